"""`import mercer` is quick: what most sessions do not need comes when it is asked for."""

import subprocess
import sys

import pytest

import mercer


def test_estimators_are_loaded_when_one_is_asked_for():
    program = (
        "import sys, mercer\n"
        "assert 'mercer.estimators' not in sys.modules\n"
        "assert 'SVC' in dir(mercer)\n"
        "assert mercer.SVC is mercer.estimators.SVC\n"
        "assert mercer.losses.Hinge().target == 'label'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_every_public_name_is_there_and_no_other():
    assert all(hasattr(mercer, name) for name in mercer.__all__)
    with pytest.raises(AttributeError, match="module 'mercer' has no attribute 'SVM'"):
        mercer.SVM
