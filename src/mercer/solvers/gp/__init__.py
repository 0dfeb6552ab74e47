"""Gaussian processes: likelihood, its maximum, and the posterior."""
