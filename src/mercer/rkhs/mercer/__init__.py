"""Mercer expansions: measures, quadrature, eigenfunctions."""
