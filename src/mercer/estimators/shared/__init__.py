"""The common part of all estimators: data, classes, parameters, the way through a fit, margins."""
