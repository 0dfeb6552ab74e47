"""The largest eigenvalues of a kernel matrix and their vectors."""
