"""Model files: a model as plain data in one file, and back."""

from mercer.io.container import DamagedFile, NewerFile, facts, load, save
from mercer.io.registry import NotRegistered, register

__all__ = ["DamagedFile", "NewerFile", "NotRegistered", "facts", "load", "register", "save"]
