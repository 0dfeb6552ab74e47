"""The format of SVMlight and LIBSVM: a target, and index:value for what is not zero."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from mercer.tables.cells import ABSENT
from mercer.tables.source import Source

if TYPE_CHECKING:
    import pandas as pd

TARGET = "target"
_DENSE = 2**26  # entries up to which a table is held with its zeros
_LINE = re.compile(rb"\s*\S+(\s+qid:\d+)?(\s+\d+:[^\s:]+)*\s*(#.*)?", re.DOTALL)


def pieces(source: Source, rows: int | None) -> Iterator[pd.DataFrame]:
    """Yield tables with a column "target", and one for each feature, called f and its index in the file.

    A piece has columns up to the largest index in it; its `attrs` say that those it does not have are zero.
    """
    done = 0
    while lines := list(islice(source.stream, rows)):
        if any(map(_says, lines)):
            yield _piece(source, lines, done)
        done += len(lines)


def _says(line: bytes) -> bool:
    return not line.lstrip().startswith(b"#") and bool(line.strip())


def _piece(source: Source, lines: list[bytes], done: int) -> pd.DataFrame:
    import pandas as pd
    from sklearn.datasets import load_svmlight_file

    try:
        matrix, target = load_svmlight_file(io.BytesIO(b"".join(lines)), zero_based=True)
    except (ValueError, OverflowError) as error:
        raise _explained(source, lines, done, str(error)) from error
    first = int(matrix.indices.min()) > 0 if matrix.nnz else 1  # indices from 1, as usual: there is no f0
    features = matrix[:, int(first) :]
    names = [f"f{i}" for i in range(int(first), matrix.shape[1])]
    if matrix.shape[0] * len(names) <= _DENSE:
        frame = pd.DataFrame(features.toarray(), columns=names)
    else:
        frame = pd.DataFrame.sparse.from_spmatrix(features, columns=names)
    whole = bool(np.all(target == np.floor(target))) and bool(np.abs(target).max(initial=0.0) < 2**53)
    frame.insert(0, TARGET, target.astype(np.int64) if whole else target)
    frame.attrs[ABSENT] = 0.0
    return frame


def _explained(source: Source, lines: list[bytes], done: int, said: str) -> Exception:
    for i, line in enumerate(lines, done + 1):
        if _says(line) and not _good(line):
            return source.wrong(
                f"line {i:,} is no target followed by index:value with growing indices: {line.strip()[:60]!r}"
            )
    return source.wrong(f"it cannot be read as svmlight ({said})")


def _good(line: bytes) -> bool:
    if not _LINE.fullmatch(line):
        return False
    target, *cells = line.partition(b"#")[0].split()
    pairs = [cell.split(b":") for cell in cells if not cell.startswith(b"qid:")]
    try:
        float(target)
        indices = [int(i) for i, value in pairs if float(value) == float(value)]
    except ValueError:
        return False
    return all(i < j for i, j in pairwise(indices))
