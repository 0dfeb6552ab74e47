"""Statistics of samples in the space: embeddings, two-sample and independence tests, densities."""
