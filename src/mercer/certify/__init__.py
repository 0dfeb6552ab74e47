"""Certificates: what a fit claims about itself, and how anyone can check it."""

from mercer.certify.certificate import Certificate, combined
from mercer.certify.check import check_svm
from mercer.certify.values import product, tiles

__all__ = ["Certificate", "combined", "check_svm", "product", "tiles"]
