"""Kernels on other objects: categories, sets, rankings, dissimilarities, Python functions, given matrices."""
