"""Preconditioners of K + D: low-rank parts of K, nearest points, and the choice among them."""
