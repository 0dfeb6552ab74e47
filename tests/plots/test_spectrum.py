import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from mercer import RBF, Matern, plots
from mercer.rkhs import Box, MercerExpansion

X = np.random.default_rng(0).standard_normal((40, 3))


def drawn(axes):
    """The eigenvalues as the dots show them, full and hollow."""
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    return np.sort(np.concatenate([line.get_ydata() for line in dots]))[::-1]


def test_the_dots_are_the_eigenvalues():
    expansion = MercerExpansion(RBF(1.0), stats.norm(), 12)
    axes = plots.spectrum(expansion).axes[0]
    np.testing.assert_array_equal(drawn(axes), expansion.eigenvalues)
    assert axes.get_yscale() == "log"
    assert axes.get_title(loc="left") == "99.999% of the trace in 12 terms"


def test_the_curves_are_the_eigenfunctions_each_to_its_height():
    expansion = MercerExpansion(RBF(0.5), Box(0, 2), 8)
    figure = plots.spectrum(expansion, functions=3)
    curves = [line for line in figure.axes[1].lines if len(line.get_xdata()) > 2]
    assert len(curves) == 3
    for j, line in enumerate(curves):
        x, y = (np.asarray(side, dtype=float) for side in line.get_data())
        values = expansion.eigenfunctions[j](x[:, None])
        np.testing.assert_allclose((y + j) / 0.45, values / np.abs(values).max(), atol=1e-12)
    assert (curves[0].get_xdata()[0], curves[0].get_xdata()[-1]) == (0.0, 2.0)
    assert [tick.get_text() for tick in figure.axes[1].get_yticklabels()] == ["φ₁", "φ₂", "φ₃"]
    assert figure.axes[1].get_title(loc="left") == "eigenfunctions of RBF(scale=0.5)"


def test_functions_of_the_plane_are_maps():
    expansion = MercerExpansion(Matern(1.5, 1.0), X[:, :2], 6)
    figure = plots.spectrum(expansion, functions=5)
    maps = [axes.images[0] for axes in figure.axes if axes.images]
    assert len(maps) == 5
    low, high = X[:, :2].min(axis=0), X[:, :2].max(axis=0)
    corner = np.asarray(maps[2].get_array())[-1, 0]
    np.testing.assert_allclose(corner, expansion.eigenfunctions[2]([[low[0], high[1]]])[0])


def test_other_points_have_a_spectrum_only():
    figure = plots.spectrum(MercerExpansion(RBF(1.0), X, 5))
    assert len(figure.axes) == 1
    assert drawn(figure.axes[0]).shape == (5,)


def test_doubtful_eigenvalues_are_hollow():
    expansion = MercerExpansion(RBF(2.0), Box([0] * 6, [9] * 6), 30, nodes=256)
    doubtful = int((expansion.errors > 0.1 * expansion.eigenvalues).sum())
    assert doubtful > 0
    dots = [line for line in plots.spectrum(expansion).axes[0].lines if line.get_markerfacecolor() == "white"]
    assert sum(len(line.get_ydata()) for line in dots) == doubtful


def test_it_draws_into_given_axes():
    axes = Figure().subplots()
    assert plots.spectrum(MercerExpansion(RBF(1.0), stats.norm(), 4), ax=axes) is axes.figure
    assert drawn(axes).shape == (4,)


def test_one_point_and_one_term():
    assert plots.spectrum(MercerExpansion(RBF(1.0), [[0.5]], 3)).axes[0].get_title(loc="left").endswith("in 1 term")


@pytest.mark.parametrize("functions", [0, 1.5, True], ids=repr)
def test_the_number_of_functions_is_a_number(functions):
    with pytest.raises(ValueError, match="functions must be a whole number of at least 1; it is"):
        plots.spectrum(MercerExpansion(RBF(1.0), X, 2), functions)


def test_an_expansion_is_drawn():
    with pytest.raises(TypeError, match="a MercerExpansion is drawn; this is RBF"):
        plots.spectrum(RBF(1.0))
