"""Checks that users run on kernels of their own, and the library on all of its."""

from mercer.testing.losses import check_loss
from mercer.testing.objects import LAWS, check_kernel, clone, equality, parameters, pickling, proof, representation
from mercer.testing.rounding import Rounding, rounding
from mercer.testing.values import (
    blocks,
    cauchy_schwarz,
    diagonal,
    finite,
    float32,
    formula,
    matvec,
    positive_semidefinite,
    symmetry,
)

__all__ = [
    "check_kernel",
    "check_loss",
    "LAWS",
    "finite",
    "symmetry",
    "diagonal",
    "formula",
    "blocks",
    "matvec",
    "proof",
    "positive_semidefinite",
    "cauchy_schwarz",
    "float32",
    "clone",
    "pickling",
    "representation",
    "parameters",
    "equality",
    "Rounding",
    "rounding",
]
