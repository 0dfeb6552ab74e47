"""The representer theorem as an engine: any loss, any increasing penalty on the norm, any kernel."""
