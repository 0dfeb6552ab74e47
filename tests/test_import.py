"""`import mercer` is quick: what most sessions do not need comes when it is asked for."""

import subprocess
import sys

import pytest

import mercer


def test_estimators_are_loaded_when_one_is_asked_for():
    program = (
        "import sys, mercer\n"
        "before = bool({'mercer.estimators', 'mercer.io', 'safetensors'} & set(sys.modules))\n"
        "print(before, 'SVC' in dir(mercer), mercer.SVC is mercer.estimators.SVC, mercer.losses.Hinge().target)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, timeout=120, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True", "True", "label"]


def test_every_public_name_is_there_and_no_other():
    assert all(hasattr(mercer, name) for name in mercer.__all__)
    with pytest.raises(AttributeError, match="module 'mercer' has no attribute 'SVM'"):
        mercer.SVM
