"""Warnings that name the line of the caller."""

import warnings

from sklearn.pipeline import make_pipeline

from mercer import SVC, KernelRidge
from mercer.machine.warn import warn
from mercer.tables import TableEncoder


def test_the_line_of_the_caller_is_named_however_deep_the_warning_arises():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        SVC(C=1e6, max_iter=1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
        KernelRidge(1.0).fit([[0.0], [1.0]], [[1.0], [2.0]])
        encoder = make_pipeline(TableEncoder()).fit([[0.0, "a"], [1.0, "b"], [2.0, "c"]])
        encoder.transform([["old", "a"]])  # through two functions of scikit-learn's
        warn("said here", DeprecationWarning)
    assert {found.filename for found in seen} == {__file__}
    assert "'old'" in str(seen[-2].message)
    assert seen[-1].category is DeprecationWarning
