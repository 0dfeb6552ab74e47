"""Tables: reading them in pieces, and turning their columns into numbers that a kernel can compare."""

from mercer.tables.encoder import Column, TableEncoder
from mercer.tables.kinds import Target, target_of
from mercer.tables.read import read_pieces, read_table
from mercer.tables.source import TableError
from mercer.tables.sparse import SparseEncoder

__all__ = ["Column", "SparseEncoder", "TableEncoder", "TableError", "Target", "read_pieces", "read_table", "target_of"]
