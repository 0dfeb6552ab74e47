"""Errors in tables."""


class TableError(ValueError):
    """A table that cannot be read, or a column that cannot be what it should be; the message says why in a sentence.

    Examples
    --------
    >>> from mercer.tables import read_table
    >>> read_table("nowhere.csv")
    Traceback (most recent call last):
    mercer.tables.errors.TableError: 'nowhere.csv': there is no such file.
    """
