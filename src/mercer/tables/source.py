"""Sources of tables: a file or standard input, compressed or not, of a format that name or bytes tell."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any

FORMATS = ("csv", "tsv", "txt", "jsonl", "xlsx", "svmlight", "parquet", "feather")

_ENDINGS = {
    "csv": "csv",
    "tsv": "tsv",
    "tab": "tsv",
    "txt": "txt",
    "data": "txt",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "jsonl",
    "xlsx": "xlsx",
    "xlsm": "xlsx",
    "parquet": "parquet",
    "pq": "parquet",
    "feather": "feather",
    "arrow": "feather",
    "svm": "svmlight",
    "svmlight": "svmlight",
    "libsvm": "svmlight",
}
_COMPRESSED = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
_BINARY = {b"PAR1": "parquet", b"ARROW1": "feather", b"\xff\xff\xff\xff": "feather", b"PK\x03\x04": "xlsx"}
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError)  # what reading a damaged or vanishing file raises
_HEAD = 2**18  # bytes that are looked at before anything is read
ROW = 2**26  # bytes of the longest row
_JSON = re.compile(rb"\s*\{\s*[\"}]")
_SVMLIGHT = re.compile(rb"\s*[+-]?[\d.]+(e[+-]?\d+)?(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?", re.IGNORECASE)


class TableError(ValueError):
    """A table that cannot be read, or a column that cannot be what it should be; the message says why in a sentence.

    Examples
    --------
    >>> from mercer.tables import read_table
    >>> read_table("nowhere.csv")
    Traceback (most recent call last):
    mercer.tables.source.TableError: 'nowhere.csv': there is no such file.
    """


class Source:
    """An open table.

    Attributes
    ----------
    called
        What errors call it.
    format
        One of `FORMATS`.
    head
        Its first bytes, decompressed; of text, in UTF-8.
    stream
        All of its bytes, decompressed, from the first on; of text, in UTF-8.
    file
        The same as a file in which one can go back, if it is one.
    """

    def __init__(
        self, called: str, raw: IO[bytes], format: str | None, encoding: str | None, ending: str | None
    ) -> None:
        self.called = called
        try:
            self.head, self.stream = _ahead(raw)
            packed = next((kind for magic, kind in _COMPRESSED.items() if self.head.startswith(magic)), None)
            self.file = raw if packed is None and raw.seekable() else None
            if packed is not None:
                self.head, self.stream = _ahead(_decompressed(self.stream, packed))
            binary = self._binary(format or ending)
            if binary is None:
                self._read_as_text(encoding)
        except BROKEN as error:
            raise self.broken(error) from error
        if not self.head.strip():
            raise self.wrong("it is empty")
        self.format = binary or self._text(format or ending)

    def wrong(self, what: str) -> TableError:
        """Return the error that says what is wrong with this table."""
        return TableError(f"{self.called}: {what}.")

    def too_long(self, line: int) -> TableError:
        """Return the error for a line that is longer than a row may be."""
        return self.wrong(f"line {line:,} is longer than {ROW // 2**20} MB. Break the lines after each row")

    def require_distinct(self, names: list[str]) -> None:
        """Raise unless all columns have names of their own."""
        if len(set(names)) < len(names):
            twice = next(name for name, times in Counter(names).items() if times > 1)
            raise self.wrong(f"two columns are called {twice!r}. Give them different names")

    def broken(self, error: Exception) -> TableError:
        """Return the error for a stream that cannot be read to its end."""
        return self.wrong(f"it cannot be read or decompressed ({error}). It may be cut off or damaged; copy it again")

    def _binary(self, said: str | None) -> str | None:
        """Return the format of a file that is no text, by its first bytes."""
        binary = next((kind for magic, kind in _BINARY.items() if self.head.startswith(magic)), None)
        if binary is not None and said not in (binary, None):
            raise self.wrong(f"it is a file of {binary}, not of {said}. Pass format={binary!r}")
        if self.head.startswith(_OLD_EXCEL):
            raise self.wrong(
                "it is a workbook of an old Excel, or has a password. Save it as .xlsx, without a password"
            )
        if binary is None and said in _BINARY.values() and self.head:
            raise self.wrong(f"it is no file of {said}, though its name or `format` says so. Pass the right format")
        return binary

    def _read_as_text(self, encoding: str | None) -> None:
        """Turn the text into UTF-8, and look ahead for the end of its first line."""
        mark = next((mark for mark in _MARKS if self.head.startswith(mark)), b"")
        if mark or encoding or b"\x00" not in self.head:
            self.stream.read(len(mark))
            self.stream = _stream(self._recoded(self.stream, _MARKS.get(mark, encoding or "utf-8"), bool(mark)))
        size = _HEAD
        self.head, self.stream = _ahead(self.stream, size)
        while len(self.head) == size < ROW and b"\n" not in self.head.lstrip() and b"\x00" not in self.head:
            size *= 4
            self.head, self.stream = _ahead(self.stream, size)

    def _recoded(self, stream: IO[bytes], encoding: str, marked: bool) -> Iterator[bytes]:
        """Yield the text in UTF-8, or say which byte of it is none in its encoding."""
        lines, decoder = 1, codecs.getincrementaldecoder(encoding)()
        while True:
            data = stream.read(_HEAD)
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                lines += error.object[: error.start].count(b"\n")
                other = "latin-1" if codecs.lookup(encoding).name == "cp1252" else "windows-1252"
                remedy = f"Say its encoding, as in --encoding {other} (encoding={other!r} in Python)"
                raise self.wrong(
                    f"line {lines:,} is not {encoding}: it holds the byte 0x{error.object[error.start]:02X}. "
                    + ("It may be cut off or damaged; copy it again" if marked else remedy)
                ) from error
            except UnicodeError as error:  # UTF-16 without a mark, among others
                raise self.wrong(f"it cannot be read as {encoding} ({error}). Say another, as utf-16-le") from error
            lines += text.count("\n")
            yield text.encode("utf-8", "replace")
            if not data:
                return

    def _text(self, said: str | None) -> str:
        """Return the format of a file of text."""
        if b"\x00" in self.head:
            raise self.wrong("it is no text and no format known here; known are " + ", ".join(FORMATS))
        lines = (line for line in self.head.split(b"\n") if line.strip() and not line.startswith(b"#"))
        first = next(lines, b"").rstrip(b"\r")
        seen = "svmlight" if _SVMLIGHT.fullmatch(first) else "jsonl" if _JSON.match(first) else None
        if seen and said in ("csv", "tsv"):
            raise self.wrong(f"it is a file of {seen}, not of {said}. Pass format={seen!r}")
        return (seen or "txt") if said in (None, "txt") else said


@contextmanager
def opened(source: Any, format: str | None, encoding: str | None) -> Iterator[Source]:
    """Open a table.

    Parameters
    ----------
    source
        A path; "-" for standard input; or an open binary file.
    format
        One of `FORMATS`, or None to go by the name and the first bytes.
    encoding
        Of text that has no byte order mark; None is UTF-8.
    """
    if format is not None and format not in FORMATS:
        raise TableError(f"format={format!r} is not known; known are {', '.join(FORMATS)}.")
    try:
        "a".encode(encoding or "utf-8")
    except (LookupError, ValueError):
        raise TableError(
            f"encoding={encoding!r} is not known. Say windows-1252, latin-1, utf-16-le or another that Python knows."
        ) from None
    if hasattr(source, "read"):
        yield Source(repr(getattr(source, "name", "the table")), source, format, encoding, None)
        return
    path = os.fspath(source)
    if path == "-":
        yield Source("standard input", sys.stdin.buffer, format, encoding, None)
        return
    called = repr(path)
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below; the errors of the readers are not those of opening
    except FileNotFoundError:
        raise TableError(f"{called}: there is no such file.") from None
    except IsADirectoryError:
        raise TableError(f"{called}: this is a folder, not a file.") from None
    except OSError as error:
        raise TableError(f"{called}: it cannot be opened ({error.strerror}).") from error
    with file:
        yield Source(called, file, format, encoding, ending_of(path))


def ending_of(path: str) -> str | None:
    """Return the format that a name tells.

    Examples
    --------
    >>> ending_of("data.csv.gz"), ending_of("a9a.libsvm"), ending_of("data")
    ('csv', 'svmlight', None)
    """
    parts = os.path.basename(path).lower().split(".")
    while len(parts) > 1 and parts[-1] in ("gz", "bz2", "xz", "zst"):
        parts.pop()
    return _ENDINGS.get(parts[-1]) if len(parts) > 1 else None


class _Parts(io.RawIOBase):
    """A stream of bytes that come in parts."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._left, self._parts = memoryview(b""), iter(parts)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not len(self._left):
            part = next(self._parts, None)
            if part is None:
                return 0
            self._left = memoryview(part)
        data = self._left[: len(buffer)]
        self._left = self._left[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def _stream(parts: Iterable[bytes]) -> IO[bytes]:
    return io.BufferedReader(_Parts(parts), 2**18)


def _ahead(raw: IO[bytes], size: int = _HEAD) -> tuple[bytes, IO[bytes]]:
    """Return the first bytes of a stream, and the stream with these still to come."""
    head = b""
    while len(head) < size:
        more = raw.read(size - len(head))
        if not more:
            break
        head += more
    return head, _stream(chain([head], iter(lambda: raw.read(2**18), b"")))


def _decompressed(raw: IO[bytes], packed: str) -> IO[bytes]:
    if packed == "gz":
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if packed == "bz2":
        return bz2.BZ2File(raw)
    if packed == "xz":
        return lzma.LZMAFile(raw)
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
