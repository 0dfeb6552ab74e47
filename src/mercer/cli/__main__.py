"""`python -m mercer.cli` is the `mercer` command."""

from mercer.cli import main

main()
