import numpy as np
import pytest

from mercer import SVC, SVR, KernelMachine, KernelRidge, LinearSVC, NuSVC, Pegasos, plots
from mercer.losses import EpsilonInsensitive

X, y = plots.LIFTS["rings"].sample()
Z = np.sin(3 * X[:, 0]) + 0.3 * X[:, 1]
TWO = [SVC(), SVC(C=np.inf), NuSVC(nu=0.3), LinearSVC(), KernelMachine(loss="hinge"), Pegasos(lam=0.1, random_state=0)]


def distance(points, segments):
    """How far each point is from the nearest of some segments."""
    found = []
    for start, end in segments:
        along = (points - start) @ (end - start) / ((end - start) @ (end - start))
        feet = start + np.clip(along, 0, 1)[:, None] * (end - start)
        found.append(np.linalg.norm(points - feet, axis=1))
    return np.min(found, axis=0)


def drawn(display):
    return np.vstack([scatter.get_offsets() for scatter in display.points_.values()])


@pytest.mark.parametrize("model", TWO, ids=repr)
def test_points_lie_on_the_three_lines_as_far_as_the_fit_says(model):
    table = model.fit(X, y).margins(X, y)
    display = plots.KKTDisplay.from_estimator(model, X, y)
    points = drawn(display)
    assert sorted(map(tuple, points)) == sorted(zip(table["margin"], table["alpha"], strict=True))
    segments = [np.asarray(segment) for segment in display.lines_.get_segments()]
    assert len(segments) == (2 if model.get_params().get("C") == np.inf else 3)
    room = 1e-6 * max(1.0, points[:, 1].max())
    assert (distance(points, segments) <= table["kkt"].max() + room).all()


def test_a_tube_has_five_lines_and_signs():
    model = SVR(epsilon=0.2).fit(X, Z)
    display = plots.KKTDisplay.from_estimator(model, X, Z)
    segments = [np.asarray(segment) for segment in display.lines_.get_segments()]
    assert len(segments) == 5
    assert (distance(drawn(display), segments) <= model.margins(X, Z)["kkt"].max() + 1e-6).all()
    assert set(display.points_) == {"inside the tube", "on the tube", "outside the tube"}
    assert np.sign(display.alpha[display.alpha != 0]).tolist() == np.sign(display.at[display.alpha != 0]).tolist()


@pytest.mark.parametrize("model", [SVC(class_weight="balanced"), SVC(), SVR(epsilon=0.2)], ids=repr)
def test_weighted_samples_have_one_top_line(model):
    weight, target = np.random.default_rng(0).uniform(0.5, 2.0, len(X)), Z if isinstance(model, SVR) else y > 0
    keep = slice(40, None)  # classes of different sizes
    data = X[keep], target[keep], weight[keep]
    display = plots.KKTDisplay.from_estimator(model.fit(*data), *data)
    full = np.array([role in ("inside", "misclassified", "outside the tube") for role in display.role])
    np.testing.assert_allclose(np.abs(display.alpha[full]), 1.0)
    assert (np.abs(display.alpha[~full]) <= 1.0).all()


def test_the_tube_of_a_loss():
    model = KernelMachine(loss="epsilon_insensitive").fit(X, Z)
    assert plots.KKTDisplay.from_estimator(model, X, Z).epsilon == EpsilonInsensitive().epsilon


def test_the_legend_counts_the_roles():
    model = SVC().fit(X, y)
    counts = model.margins(X, y)["role"].value_counts()
    texts = {text.get_text() for text in plots.kkt(model, X, y).axes[0].get_legend().get_texts()}
    assert texts == {f"{role} ({n})" for role, n in counts.items()}


def test_one_pair_of_classes():
    model, labels = SVC().fit(X, np.arange(len(X)) % 3), np.arange(len(X)) % 3
    display = plots.KKTDisplay.from_estimator(model, X, labels, problem=1)
    assert display.title == "SVC, problem 2 of 3"
    assert len(display.at) == np.isin(labels, (0, 2)).sum()


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(TypeError, match="a machine with a margin or a tube; KernelRidge is none"):
        plots.kkt(KernelRidge().fit(X, Z), X, Z)
    with pytest.raises(ValueError, match="give the X and y that the model was fitted to"):
        plots.kkt(SVC().fit(X, y), X[:9], y[:9])
    with pytest.raises(ValueError, match="loss='squared_hinge' has no largest coefficient"):
        plots.kkt(LinearSVC(loss="squared_hinge").fit(X, y), X, y)
    with pytest.raises(ValueError, match="problem must be a number from 0 to 0"):
        plots.kkt(SVC().fit(X, y), X, y, problem=1)
