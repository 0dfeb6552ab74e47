"""Linear systems (K + s I) A = Y: factors, conjugate gradients and their preconditioners, ridge regression."""
