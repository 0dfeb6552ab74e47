"""Functions of the space: values, norms, projections, fewer centres, preimages."""
