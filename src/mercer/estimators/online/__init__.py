"""Learners that see one point at a time."""
