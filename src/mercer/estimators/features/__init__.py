"""Machines that learn how their columns are to be compared."""
