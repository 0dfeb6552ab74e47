"""Certificates: what a fit claims about itself, and how anyone can check it."""

from mercer.certify.certificate import Certificate, Stop, combined, relative_gap, without_duality
from mercer.certify.check import check_svm
from mercer.certify.positive import seen_indefinite, why_indefinite, with_duality
from mercer.certify.values import product, tiles

__all__ = [
    "Certificate",
    "Stop",
    "check_svm",
    "combined",
    "product",
    "relative_gap",
    "seen_indefinite",
    "tiles",
    "why_indefinite",
    "with_duality",
    "without_duality",
]
