import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from mercer import RBF, SVC, KernelRidge, KernelSearchCV, Linear, Polynomial, auto, plots

X, y = plots.LIFTS["xor"].sample()


def cell(display, kernel, price):
    """The score drawn for a candidate, from the place of its rectangle."""
    kernels = list(dict.fromkeys(c.kernel for c in display.cells))
    assert len(kernels) * len({c.price for c in display.cells}) == display.mesh_.get_array().size
    return kernels.index(kernel), sorted({c.price for c in display.cells}).index(price)


def test_cells_are_the_scores_of_the_search():
    search = KernelSearchCV(SVC(), [RBF(2.0), RBF(0.5), Linear()], {"C": [0.1, 1.0, 10.0]}, cv=3, exhaustive=True)
    display = plots.SearchDisplay.from_search(search.fit(X, y))
    drawn = np.ma.filled(display.mesh_.get_array(), np.nan).reshape(3, 3)
    low = display.mesh_.get_clim()[0]
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        at = cell(display, repr(params["kernel"]), params["C"])
        assert drawn[at] == pytest.approx(score) or score <= drawn[at] >= low  # the lowest share a shade
    row, column = cell(display, repr(search.best_params_["kernel"]), search.best_params_["C"])
    assert display.ring_.get_xy() == (column - 0.5, row - 0.5)


def test_an_automatic_search():
    model = auto(X, y, cv=3, kernels=["RBF(1.0)", "Linear"])
    display = plots.SearchDisplay.from_search(model)
    best = model.results_["kernel"][model.best_index_]
    assert display.chosen.kernel == best
    assert display.scoring == model.scoring_
    assert display.colorbar_.ax.get_ylabel() == model.scoring_


def test_a_grid_of_scikit_learn_by_names():
    search = GridSearchCV(SVC(), {"kernel": ["rbf"], "gamma": [0.1, 1.0], "C": [1.0, 10.0]}, cv=3).fit(X, y)
    display = plots.SearchDisplay.from_search(search)
    assert {c.kernel for c in display.cells} == {"rbf, gamma=0.1", "rbf, gamma=1.0"}
    assert display.chosen.score == pytest.approx(search.best_score_)


def test_families_are_named_with_their_scales():
    figure = plots.search(KernelSearchCV(KernelRidge(), [RBF, Polynomial(2)], cv=3).fit(X, y))
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names[0].startswith("RBF\nscale ")
    assert names[1] == "Polynomial"


def test_what_is_no_search_is_refused():
    with pytest.raises(TypeError, match=r"a search is drawn, .* SVC is none"):
        plots.search(SVC().fit(X, y))
    with pytest.raises(ValueError, match=r"C or alpha, along one axis; this search tried \['gamma'\]"):
        plots.search(GridSearchCV(SVC(), {"gamma": [0.1, 1.0]}, cv=3).fit(X, y))
