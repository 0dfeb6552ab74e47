import numpy as np
import pytest
from scipy.optimize import linprog

from cases import each
from mercer import FromFeatures
from mercer.plots import LIFTS, Lift


def separable(X, y):
    """Whether some (w, b) has s (<w, x> + b) >= 1 for every point: feasibility of a linear program."""
    s = np.where(y == 1, 1.0, -1.0)[:, None]
    found = linprog(
        np.zeros(X.shape[1] + 1),
        A_ub=-s * np.column_stack([X, np.ones(len(X))]),
        b_ub=-np.ones(len(X)),
        bounds=(None, None),
    )
    assert found.status in (0, 2)
    return found.status == 0


@each("seed", range(5))
@each("name", LIFTS)
def test_lifting_makes_the_classes_linearly_separable(name, seed):
    X, y = LIFTS[name].sample(seed)
    assert not separable(X, y)
    assert separable(LIFTS[name](X), y)


@pytest.mark.parametrize("name", LIFTS)
def test_samples_are_balanced_finite_and_given_by_the_seed(name):
    X, y = LIFTS[name].sample(3)
    assert X.shape == (len(y), len(LIFTS[name].inputs))
    assert np.isfinite(X).all()
    assert set(y) == {0, 1}
    assert 0.4 < y.mean() < 0.6
    again, labels = LIFTS[name].sample(3)
    np.testing.assert_array_equal(again, X)
    np.testing.assert_array_equal(labels, y)
    assert not np.array_equal(LIFTS[name].sample(4)[0], X)


@pytest.mark.parametrize(
    ("name", "point", "image"),
    [
        ("rings", [2.0, 3.0], [2.0, 3.0, 13.0]),
        ("xor", [2.0, 3.0], [2.0, 3.0, 6.0]),
        ("line", [3.0], [3.0, 9.0]),
        ("stripes", [2.0, 1.0], [2.0, 81.0]),
        ("corners", [2.0, 3.0], [2.0, 6.0]),
    ],
)
def test_the_maps_are_those_of_the_lectures(name, point, image):
    np.testing.assert_array_equal(LIFTS[name]([point]), [image])
    assert len(LIFTS[name].outputs) == len(image)


@pytest.mark.parametrize("name", LIFTS)
def test_a_lift_is_the_feature_map_of_a_kernel(name):
    X, _ = LIFTS[name].sample()
    image = LIFTS[name](X)
    np.testing.assert_allclose(FromFeatures(LIFTS[name])(X), image @ image.T, rtol=1e-12, atol=1e-12)


def test_a_lift_without_data_asks_for_them():
    with pytest.raises(ValueError, match="'cubes' has no data of its own; give X and y"):
        Lift("cubes", lambda X: X**3, ("$x$",), ("$x^3$",)).sample()
