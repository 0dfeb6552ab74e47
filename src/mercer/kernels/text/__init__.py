"""Kernels written as text."""
