import numpy as np
import pandas as pd
import pytest

from mercer import RBF, SVC, SVR, GaussianProcessRegressor, KernelQuantileRegressor, KernelRidge, plots

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-3, 3, (60, 1)), axis=0)
y = np.sin(2 * X[:, 0]) + rng.normal(0, 0.2, 60)


def edges(band, at):
    """The lower and the upper edge of an area."""
    vertices = band.get_paths()[0].vertices
    return [np.array([part(vertices[vertices[:, 0] == x, 1]) for x in at]) for part in (np.min, np.max)]


def test_quantiles_are_areas_the_widest_first():
    model = KernelQuantileRegressor((0.75, 0.05, 0.5, 0.25, 0.95)).fit(X, y)
    display = plots.RegressionDisplay.from_estimator(model, X, y)
    assert [band.get_label() for band in display.bands_] == ["0.05 to 0.95", "0.25 to 0.75"]
    values = model.predict(display.at[:, None])
    np.testing.assert_allclose(display.lines_[0].get_ydata(), values[:, 2])
    low, high = edges(display.bands_[0], display.at)
    np.testing.assert_allclose(low, np.minimum(values[:, 1], values[:, 4]), atol=1e-12)
    np.testing.assert_allclose(high, np.maximum(values[:, 1], values[:, 4]), atol=1e-12)


def test_a_process_has_two_deviations_of_f_and_of_new_values():
    model = GaussianProcessRegressor().fit(X, y)
    display = plots.RegressionDisplay.from_estimator(model, X, y)
    new, f = (np.subtract(*edges(band, display.at)[::-1]) for band in display.bands_)
    np.testing.assert_allclose(f, 4 * model.predict(display.at[:, None], return_std=True)[1], rtol=1e-6)
    assert (new > f).all()


def test_a_tube_and_its_support_vectors():
    model = SVR(epsilon=0.3).fit(X, y)
    display = plots.RegressionDisplay.from_estimator(model, X, y)
    middle = np.asarray(display.lines_[0].get_ydata())
    tube = [line for line in display.ax_.lines if line not in display.lines_]
    for sign, line in zip((-1, 1), tube, strict=True):
        np.testing.assert_allclose(line.get_ydata(), middle + sign * 0.3)
    rings = display.ax_.collections[-1].get_offsets()
    np.testing.assert_array_equal(rings, np.column_stack([X[model.support_, 0], y[model.support_]]))


def test_one_kernel_at_several_scales():
    models = [KernelRidge(0.1, kernel=RBF(scale)).fit(X, y) for scale in (0.05, 0.5, 5.0)]
    display = plots.RegressionDisplay.from_estimator(models, X, y)
    assert [line.get_label() for line in display.lines_] == ["RBF(scale=0.05)", "RBF(scale=0.5)", "RBF(scale=5.0)"]
    bends = [np.abs(np.diff(line.get_ydata(), 2)).sum() for line in display.lines_]
    assert bends[0] > bends[1] > bends[2]  # M15


def test_models_with_one_kernel_are_told_apart():
    models = [KernelRidge(alpha, kernel=RBF(1.0)).fit(X, y) for alpha in (0.1, 10.0)]
    names = [line.get_label() for line in plots.RegressionDisplay.from_estimator(models, X, y).lines_]
    assert len(set(names)) == 2


def test_a_table_names_the_axis(recwarn):
    table = pd.DataFrame(X, columns=["hours"])
    display = plots.RegressionDisplay.from_estimator(KernelRidge(kernel=RBF(1.0)).fit(table, y), table, y)
    assert display.ax_.get_xlabel() == "hours"
    assert not recwarn.list


@pytest.mark.parametrize(
    ("model", "data", "error", "words"),
    [
        (
            KernelRidge().fit(np.hstack([X, X]), y),
            (np.hstack([X, X]), y),
            ValueError,
            r"shape \(60, 2\). Give one column",
        ),
        (KernelRidge().fit(X, y), (X, y[:5]), ValueError, r"X has 60 points and y has shape \(5,\)"),
        (SVC().fit(X, y > 0), (X, y), TypeError, "SVC is none. plots.boundary draws classifiers"),
        (KernelRidge().fit(X, np.c_[y, y]), (X, y), ValueError, "this KernelRidge predicts 2. Fit it to one"),
    ],
)
def test_what_cannot_be_drawn_is_said(model, data, error, words):
    with pytest.raises(error, match=words):
        plots.regression(model, *data)
