"""The common part of the commands: options, outputs, rows, scores, errors, the terminal."""
