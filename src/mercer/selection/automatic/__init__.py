"""Models that find their kernel."""
