"""Models of the representer theorem: ridge, logistic, quantile and robust regression, any loss, Gaussian processes."""
