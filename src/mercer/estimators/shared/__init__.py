"""The common part of all estimators: inputs, labels, parameters, kernels by name, expansions, margins."""
