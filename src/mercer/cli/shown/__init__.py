"""Commands that show rather than work: demo, tour, lecture, race, catalogue."""
