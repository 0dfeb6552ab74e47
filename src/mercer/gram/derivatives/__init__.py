"""Derivatives of kernel values, in parameters and in points, contracted with matrices."""
