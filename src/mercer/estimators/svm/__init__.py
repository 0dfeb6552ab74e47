"""Support vector machines: classification, regression, one class."""
