import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from sklearn import svm

from mercer import RBF, SVC, SVR, Linear, LinearSVC, Pegasos, Perceptron, Polynomial, plots
from mercer.plots.decision import _nearest

X, y = plots.LIFTS["xor"].sample()


def curves(axes, style):
    """The lines of one style: "-" for the hyperplane, "--" for the margins."""
    return [line.get_xydata() for line in axes.lines if (line.get_linestyle() == "-") == (style == "-")]


def scatters(axes):
    """Points drawn as classes, as rings and as crosses."""
    drawn = [c for c in axes.collections if isinstance(c, PathCollection)]
    return np.vstack([drawn[0].get_offsets(), drawn[1].get_offsets()]), drawn[2].get_offsets(), drawn[3].get_offsets()


def threads(axes):
    found = [np.array(c.get_segments()) for c in axes.collections if type(c) is LineCollection]
    return np.concatenate(found) if found else np.empty((0, 2, 2))


@pytest.fixture(scope="module", params=[Linear(), Polynomial(2), RBF(scale=1.0)], ids=repr)
def drawn(request):
    model = SVC(kernel=request.param, C=0.1).fit(X, y)
    return model, plots.boundary(model, X, y).axes[0]


def test_the_solid_line_is_f_0_and_the_dashed_ones_are_the_margins(drawn):
    model, axes = drawn
    for style, level in (("-", 0.0), ("--", 1.0)):
        assert curves(axes, style)
        for curve in curves(axes, style):
            np.testing.assert_allclose(np.abs(model.decision_function(curve)), level, atol=5e-3)


def test_support_vectors_are_ringed_and_mistakes_are_crossed(drawn):
    model, axes = drawn
    points, rings, crosses = scatters(axes)
    assert {tuple(p) for p in points} == {tuple(p) for p in X}
    np.testing.assert_array_equal(np.sort(rings, axis=0), np.sort(X[model.support_], axis=0))
    np.testing.assert_array_equal(crosses, X[model.predict(X) != y])


def test_a_thread_leads_from_each_point_with_slack_to_its_own_margin(drawn):
    model, axes = drawn
    slack = model.margins(X, y).slack.to_numpy()
    assert len(threads(axes)) == (slack > 0.01).sum() > 0
    for start, end in threads(axes):
        i = int(np.flatnonzero((start == X).all(axis=1))[0])
        assert model.decision_function(end[None]) == pytest.approx(2 * y[i] - 1, abs=2e-2)


def test_a_straight_thread_is_as_long_as_the_slack():
    model = SVC(kernel=Linear(), C=0.1).fit(X, y)
    slack = dict(zip(map(tuple, X), model.margins(X, y).slack, strict=True))
    for start, end in threads(plots.boundary(model, X, y).axes[0]):
        assert np.linalg.norm(end - start) * np.linalg.norm(model.coef_) == pytest.approx(slack[tuple(start)], rel=1e-3)


def test_the_title_tells_kernel_and_accuracy_and_the_legend_counts(drawn):
    model, axes = drawn
    right = int(100 * model.score(X, y))
    assert axes.get_title(loc="left") == f"{model.kernel_!r}: {right}% right"
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"{len(model.support_)} support vectors" in texts
    assert f"{(model.predict(X) != y).sum()} misclassified" in texts


def test_a_hard_margin_has_no_threads():
    model = SVC(kernel=RBF(scale=1.0), C=np.inf).fit(X, y)
    assert len(threads(plots.boundary(model, X, y).axes[0])) == 0


@pytest.mark.parametrize(
    "model", [LinearSVC(), Perceptron(RBF(scale=1.0)), Pegasos(lam=0.1), svm.SVC()], ids=lambda m: type(m).__module__
)
def test_other_classifiers(model):
    axes = plots.boundary(model.fit(X, y), X, y).axes[0]
    assert len(scatters(axes)[1]) == len(getattr(model, "support_", []))


def test_new_points_have_no_support_vectors_among_them():
    model = SVC().fit(X, y)
    assert len(scatters(plots.boundary(model, X[::-1], y[::-1]).axes[0])[1]) == 0
    assert len(scatters(plots.boundary(model, X[:9], y[:9]).axes[0])[1]) == 0


def test_a_table_names_the_axes(recwarn):
    table = pd.DataFrame(X, columns=["age", "height"])
    axes = plots.boundary(SVC().fit(table, y), table, y).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "height")
    assert not recwarn.list


def test_classes_may_have_any_name_and_axes_may_be_given():
    names = np.where(y == 1, "yes", "no")
    figure = Figure()
    assert plots.boundary(SVC().fit(X, names), X, names, ax=figure.add_subplot()) is figure


def test_the_users_settings_are_left_alone():
    before = dict(mpl.rcParams)
    plots.boundary(SVC().fit(X, y), X, y)
    assert dict(mpl.rcParams) == before


def test_the_nearest_place_of_a_curve():
    curve = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
    places = _nearest(np.array([[1.0, -1.0], [3.0, 1.0], [-1.0, 0.5]]), curve)
    np.testing.assert_allclose(places, [[1.0, 0.0], [2.0, 1.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("model", "data", "error", "words"),
    [
        (SVC().fit(X, y), (X, y[:5]), ValueError, "X has 200 points and y has 5 classes"),
        (
            SVC().fit(X, y),
            (X, y + 1),
            ValueError,
            r"y contains 2, which is none of the classes of this model, \[0, 1\]",
        ),
        (SVC().fit(np.hstack([X, X]), y), (np.hstack([X, X]), y), ValueError, r"two features; X has shape \(200, 4\)"),
        (SVC().fit(X, np.arange(200) % 3), (X, y), ValueError, "this SVC tells 3 apart"),
        (SVR().fit(X, y), (X, y), TypeError, "SVR is none"),
    ],
)
def test_what_cannot_be_drawn_is_said(model, data, error, words):
    with pytest.raises(error, match=words):
        plots.boundary(model, *data)
