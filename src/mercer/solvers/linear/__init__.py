"""Linear models: hinges, squared hinges and least squares with explicit features."""
