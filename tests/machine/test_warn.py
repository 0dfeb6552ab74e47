"""Warnings that name the line of the caller."""

import warnings

from mercer import SVC, KernelRidge
from mercer.machine.warn import warn


def test_the_line_of_the_caller_is_named_however_deep_the_warning_arises():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        SVC(C=1e6, max_iter=1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
        KernelRidge(1.0).fit([[0.0], [1.0]], [[1.0], [2.0]])
        warn("said here", DeprecationWarning)
    assert {found.filename for found in seen} == {__file__}
    assert seen[-1].category is DeprecationWarning
