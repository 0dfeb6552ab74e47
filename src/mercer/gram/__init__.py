"""Kernel matrices as operators, inside a memory budget."""

from mercer.gram.derivatives.parameter import Parameter, parameters, with_parameters
from mercer.gram.derivatives.sensitivity import parameter_gradient
from mercer.gram.derivatives.slope import gradient
from mercer.gram.eigenpairs import Eigenpairs, top_eigenpairs
from mercer.gram.gram import Gram
from mercer.gram.similarities import Repaired, repair
from mercer.gram.verdict import Verdict, verdict

__all__ = [
    "Eigenpairs",
    "Gram",
    "Parameter",
    "Repaired",
    "Verdict",
    "gradient",
    "parameter_gradient",
    "parameters",
    "repair",
    "top_eigenpairs",
    "verdict",
    "with_parameters",
]
