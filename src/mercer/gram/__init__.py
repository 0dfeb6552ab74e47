"""Kernel matrices as operators, inside a memory budget."""

from mercer.gram.gram import Gram
from mercer.gram.repair import Repaired, repair
from mercer.gram.verdict import Verdict, verdict

__all__ = ["Gram", "Repaired", "Verdict", "repair", "verdict"]
