"""Sets of points of every kind: vectors, sequences, graphs, bags, sets."""
