"""Linear models: support vector machines and ridge regression on explicit features."""
