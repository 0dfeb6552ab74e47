"""The machine underneath: threads, memory, files, warnings, and amounts in words."""
