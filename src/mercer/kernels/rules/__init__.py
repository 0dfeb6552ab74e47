"""Closure rules: sums, products, powers, limits, and kernels after a map."""
