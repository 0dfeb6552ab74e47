"""Cross-validation over kernels and penalties."""
