"""Models without targets: components, clusters, correlations, densities."""
