"""Kernels of strings and sequences: texts, bytes, lists of tokens, time series."""
