"""Learners that see one point at a time: the perceptron and Pegasos."""
