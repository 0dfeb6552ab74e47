"""Parameters of a kernel and weights of a mixture, learned from the targets."""
