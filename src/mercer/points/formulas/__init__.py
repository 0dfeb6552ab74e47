"""Formulas over pairs of points: traced, differentiated, run by the core."""
