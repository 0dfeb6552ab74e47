"""Kernels on vectors, one family per file."""
