"""Solvers without targets: canonical correlations and clusters."""
