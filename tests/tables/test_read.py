import bz2
import csv
import gzip
import io
import lzma
import re
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from sklearn.datasets import dump_svmlight_file

from cases import each
from mercer.tables import TableEncoder, TableError, read_pieces, read_table

CELLS = st.text("ab01.,;\"'\n\r\t -?é", max_size=5)
PACKING = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


def sample(rows=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "whole": rng.integers(0, 9, rows),
            "size": rng.normal(size=rows).round(3),
            "job": rng.choice(["smith", "baker, small", 'the "clerk"', "nurse\nat night"], rows),
            "gaps": np.where(np.arange(rows) % 3 == 0, np.nan, rng.normal(size=rows)),
        }
    )


def read(data, **options):
    return read_table(io.BytesIO(data), **options)


def same(found, wanted):
    assert_frame_equal(found, wanted, check_dtype=False, check_exact=True)


# -- formats ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packing", PACKING)
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt", ""])
def test_text_by_ending_and_by_content(tmp_path, ending, packing):
    table = sample()
    path = tmp_path / f"table{ending}{packing}"
    text = table.to_csv(index=False, sep="\t" if ending == ".tsv" else ",")
    path.write_bytes(PACKING[packing](text.encode()))
    same(read_table(path), table)
    same(read_table(str(path), rows=7), table.head(7))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
def test_the_separator_is_found(separator):
    table = sample()[["whole", "job", "size"]]
    same(read(table.to_csv(index=False, sep=separator).encode()), table)


@pytest.mark.parametrize("packing", ["", ".gz"])
@pytest.mark.parametrize("ending", [".parquet", ".feather", ".arrow"])
def test_columnar_formats(tmp_path, ending, packing):
    table = sample().assign(when=pd.date_range("2024-01-01", periods=60), kind=pd.Categorical(["u", "v"] * 30))
    path = tmp_path / f"table{ending}{packing}"
    buffer = io.BytesIO()
    table.to_parquet(buffer) if ending == ".parquet" else table.to_feather(buffer)
    path.write_bytes(PACKING[packing](buffer.getvalue()))
    same(read_table(path), table)
    pieces = list(read_pieces(path, 17))
    assert [len(p) for p in pieces] == [17, 17, 17, 9]
    same(pd.concat(pieces), table)


def test_arrow_streams():
    table = pa.Table.from_pandas(sample())
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=10)
    same(read(sink.getvalue()), sample())


def test_the_index_of_pandas_is_no_column_and_decimals_are_numbers():
    from decimal import Decimal

    table = pd.DataFrame({"v": [Decimal("1.50"), Decimal("2.25")]}, index=[7, 3])
    buffer = io.BytesIO()
    table.to_parquet(buffer)
    same(read(buffer.getvalue()), pd.DataFrame({"v": [1.5, 2.25]}))


@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight(tmp_path, zero_based):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.5)
    X[0, 0] = X[3, 5] = 1.0
    y = rng.choice([-1, 1], 50)
    path = tmp_path / "table.svm"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    found = read_table(path)
    first = 0 if zero_based else 1
    assert found.columns.tolist() == ["target", *(f"f{i}" for i in range(first, first + 6))]
    assert np.array_equal(found["target"], y)
    assert found.iloc[:, 1:].to_numpy() == pytest.approx(X)
    assert np.array_equal(read(path.read_bytes()), found)  # known by its content


def test_pieces_of_svmlight_have_the_columns_of_the_whole_for_an_encoder():
    lines = [f"{i % 2} 1:{i} 2:{i * i % 7}" + (f" 9:{i}" if i in (3, 17) else "") for i in range(30)]
    data = "\n".join(["# made", *lines]).encode()
    encoder = TableEncoder().fit(read(data).drop(columns="target"))
    whole = encoder.transform(read(data))
    pieces = list(read_pieces(io.BytesIO(data), 5))
    assert {p.shape[1] for p in pieces} == {3, 10}
    assert np.array_equal(np.concatenate([encoder.transform(p) for p in pieces]), whole)


def test_wide_svmlight_is_sparse():
    data = b"".join(b"1 %d:1\n" % (5 * i + 1) for i in range(40))
    dense = read(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mercer.tables.read._DENSE_ENTRIES", 100)
        found = read(data)
    assert isinstance(found.dtypes.iloc[-1], pd.SparseDtype)
    same(found.astype(float), dense.astype(float))
    encoder = TableEncoder().fit(dense)
    assert np.array_equal(encoder.transform(found), encoder.transform(dense))


# -- cells ------------------------------------------------------------------------------------------------


def test_blanks_and_missing_cells():
    found = read(b'age,job\n31," smith "\n ?,baker\n 40 ,N/A\n')
    same(found, pd.DataFrame({"age": [31, np.nan, 40], "job": ["smith", "baker", None]}))


def test_decimal_commas_between_semicolons():
    same(read(b"a;b\n1,5;x\n-2,25;y\n"), pd.DataFrame({"a": [1.5, -2.25], "b": ["x", "y"]}))


def test_whole_numbers_stay_exact():
    assert read(b"a,b\n9007199254740993,x\n")["a"].tolist() == [2**53 + 1]


def test_names_of_columns():
    found = read("\ufeff,größe, b \n1,2,3\n".encode())
    assert found.columns.tolist() == ["column 1", "größe", "b"]


@settings(max_examples=40)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=20), st.integers(1, 7))
def test_pieces_are_the_whole(rows, size):
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("a", "b", "c"), *((*row, "end") for row in rows)])
    data = text.getvalue().encode()
    whole = read(data, format="csv")
    assert len(whole) == len(rows)
    pieces = list(read_pieces(io.BytesIO(data), size, format="csv"))
    assert all(len(p) == size for p in pieces[:-1])
    again = pd.concat(pieces)
    assert again.index.tolist() == whole.index.tolist()
    for name in whole.columns:
        assert again[name].isna().tolist() == whole[name].isna().tolist()
    encoder = TableEncoder(min_rows=1).fit(whole.assign(x=np.arange(len(whole)) % 3, y=np.arange(len(whole))))
    parts = [encoder.transform(p.assign(x=p.index % 3, y=p.index)) for p in pieces]
    assert np.array_equal(np.concatenate(parts), encoder.transform(whole.assign(x=whole.index % 3, y=whole.index)))


@settings(max_examples=40)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20), st.integers(1, 7))
def test_pieces_of_numbers_are_the_whole_to_the_last_bit(values, size):
    table = pd.DataFrame({"a": values, "b": np.arange(len(values))})
    data = table.to_csv(index=False).encode()
    same(read(data), table)
    same(pd.concat(list(read_pieces(io.BytesIO(data), size))), table)


# -- encodings --------------------------------------------------------------------------------------------

NOTES = pd.DataFrame({"größe": np.arange(70_000), "prijs": ["€ 5", "naïve", 'š, "ž"'] + ["x"] * 69_997})


@pytest.mark.parametrize(
    ("encoding", "asked", "packing"),
    [
        ("utf-8-sig", None, ""),
        ("utf-8-sig", None, ".gz"),
        ("utf-16", None, ""),
        ("utf-16-be", None, ".gz"),
        ("utf-16-le", "utf-16-le", ""),
        ("windows-1252", "windows-1252", ""),
        ("windows-1252", "cp1252", ".gz"),
        ("utf-8", "utf-8", ".gz"),
        ("utf-8-sig", "windows-1252", ""),  # the mark knows better
    ],
)
def test_a_table_is_the_same_in_any_encoding(tmp_path, encoding, asked, packing):
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    data = (mark + NOTES.to_csv(index=False)).encode(encoding)
    (tmp_path / f"table.csv{packing}").write_bytes(PACKING[packing](data))
    same(read_table(tmp_path / f"table.csv{packing}", encoding=asked), NOTES)
    same(pd.concat(list(read_pieces(tmp_path / f"table.csv{packing}", 30_000, encoding=asked))), NOTES)


def test_svmlight_may_have_a_mark_and_an_encoding():
    same(read("1 1:2\n-1 1:3\n".encode("utf-16")), read(b"1 1:2\n-1 1:3\n"))


@given(st.binary(max_size=40), st.sampled_from([None, "windows-1252", "utf-16", "utf-7", "unicode_escape", "idna"]))
def test_any_bytes_in_any_encoding_are_a_table_or_an_error(data, encoding):
    try:
        read(b"a,b\n1," + data, encoding=encoding)
    except TableError as error:
        assert str(error).endswith(".")  # noqa: PT017 - most bytes are a table


# -- what is wrong ----------------------------------------------------------------------------------------


def some_parquet():
    buffer = io.BytesIO()
    sample().to_parquet(buffer)
    return buffer.getvalue()


LONG = sample(5000).to_csv(index=False).encode()


@each(
    ("data", "options", "words"),
    [
        (b"", {}, "it is empty"),
        (b" \n\n", {}, "it is empty"),
        (gzip.compress(b"", mtime=0), {}, "it is empty"),
        (b"a,b\n", {}, "it has names of columns, but no rows"),
        (b"a,b", {}, "it has names of columns, but no rows"),
        (b"a,b\n1,2\n3\n", {"format": "csv"}, "line 3 has 1 cell where the first line names 2 columns: '3'"),
        (b"a,b\n1,2\n3,4\n5,6,7\n", {}, "line 4 has 3 cells where the first line names 2 columns: '5,6,7'"),
        (b"a,b\n1,2\n3,\xff\n", {}, "line 3 is not utf-8: it holds the byte 0xFF. Say its encoding, as in --encoding"),
        (b"\xe9t\xe9,b\n1,2\n", {}, "line 1 is not utf-8: it holds the byte 0xE9"),
        (
            b"a,b\n1,2\n3,\x81\n",
            {"encoding": "cp1252"},
            "line 3 is not cp1252: it holds the byte 0x81. Say its encoding, "
            "as in --encoding latin-1 (encoding='latin-1' in Python)",
        ),
        ("a,b\n1,2\n".encode("utf-16")[:-1], {}, "line 2 is not utf-16-le: it holds the byte 0x0A. It may be cut off"),
        (b"a,b\n1,2\n", {"encoding": "utf-9"}, "encoding='utf-9' is not known. Say windows-1252, latin-1, utf-16-le"),
        (b"a,b\n1,2\n", {"encoding": "zip"}, "encoding='zip' is not known"),
        (b"a,b\n1,2\n", {"encoding": "utf-16"}, "it cannot be read as utf-16 (UTF-16 stream does not start with BOM)"),
        (b"\x89PNG\r\n\x00\x00", {"encoding": "latin-1"}, "it is no text and no format known here"),
        (b'a,b\n1,"x\n2,y\n', {}, 'line 2 opens a quote (") that is not closed'),
        (b'a,b\n1,"x\n' + b"2,y\n" * 2**21, {}, 'line 2 opens a quote (") that is not closed'),
        (b"a,a\n1,2\n", {}, "two columns are called 'a'"),
        (b"1,2\n3,4\n", {}, "its first line holds numbers only, so that its columns have no names"),
        (b"\x89PNG\r\n\x00\x00", {}, "it is no text and no format known here; known are csv"),
        (b"a,b\n1,2\n", {"format": "parquet"}, "it is no file of parquet"),
        (b"1 1:2\n", {"format": "csv"}, "it is a file of svmlight, not of csv"),
        (b"1 1:2\n-1 3:1 2:1\n", {}, "line 2 is no target followed by index:value with growing indices: b'-1 3:1 2:1'"),
        (b"a,b\n", {"format": "svmlight"}, "line 1 is no target followed by index:value"),
        (some_parquet(), {"format": "csv"}, "it is a file of parquet, not of csv. Pass format='parquet'"),
        (some_parquet()[:-20], {}, "it cannot be read as parquet"),
        (b"ARROW1\x00\x00and no more", {}, "it cannot be read as feather"),
        (b"a,b\n1,2\n", {"format": "xls"}, "format='xls' is not known; known are csv, tsv"),
        *((pack(LONG)[:-30], {}, "it cannot be read or decompressed") for name, pack in PACKING.items() if name),
    ],
)
def test_errors_are_sentences(data, options, words):
    with pytest.raises(TableError) as caught:
        read(data, **options)
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")
    with pytest.raises(TableError):
        list(read_pieces(io.BytesIO(data), 3, **options))


ROWS = [f"{i},word {i},{i % 7}" for i in range(2, 40)]  # lines 2 to 39


@pytest.mark.parametrize(
    ("line", "text", "until"),
    [(39, ROWS[-1], ""), (20, '20,"word 20",6', " before line 20"), (30, 'word 30",2', " before line 30")],
    ids=["to the end", "to a quoted cell", "to a quote that closes"],
)
def test_a_forgotten_quote_is_said_with_its_line(line, text, until):
    rows = ["a,b,c", *ROWS]
    rows[4] = '5,"word 5,5'
    rows[line - 1] = text
    with pytest.raises(TableError, match=rf'line 5 opens a quote \("\) that is not closed{until}\. Close it'):
        read("\n".join(rows).encode())


def test_quoted_cells_with_line_breaks_are_cells():
    cells = ["one\ntwo", "a, b\nc, d\n" * 5, 'say ""yes""\n', "\r\n", "x\n" * 100, '5""', ""]
    lines = [f'{i},"{cell}",end' for i, cell in enumerate(cells * 4000)]  # more than a block
    found = read("\n".join(["n,text,more", *lines]).encode())
    assert found["n"].tolist() == list(range(len(lines)))
    wanted = [cell.replace('""', '"').strip() or None for cell in cells]
    assert [None if pd.isna(cell) else cell for cell in found["text"][: len(cells)]] == wanted
    assert (found["more"] == "end").all()


def test_a_quote_within_a_cell_is_a_letter():
    found = read(b'pipe,size\nx"y,1\n5" wide,2\n' + b'6" long,3\n' * 200_000)
    assert found["pipe"][:3].tolist() == ['x"y', '5" wide', '6" long']
    assert len(found) == 200_002


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends_of_any_system(ends):
    lines = ["", "a,b", *(f'{i},"x{ends}y"' for i in range(60_000)), "", "7,z"]
    found = read(ends.join(lines).encode())
    assert len(found) == 60_001
    assert found["a"].tolist() == [*range(60_000), 7]


def test_lines_in_errors_are_those_of_the_file():
    text = b'a,b\n\n1,"x\ny"\n\n2,z\n3\n'
    with pytest.raises(TableError, match="line 7 has 1 cell where the first line names 2 columns: '3'"):
        read(text)
    with pytest.raises(TableError, match="line 5 is not utf-8"):
        read(b'a,b\n\n1,"x\ny"\n2,\xff\n')
    for encoding in ("utf-8", "utf-16"):
        data = ("a,b\n" + "1,é\n" * 500_000).encode(encoding) + (
            b"\xff\n" if encoding == "utf-8" else b"\x00\xdc\x0a\x00"
        )
        with pytest.raises(TableError, match="line 500,002 is not utf-"):
            list(read_pieces(io.BytesIO(data)))


def test_forty_thousand_columns_are_read():
    names = [f"column number {i}" for i in range(40_000)]
    text = "\n".join([",".join(names), *[",".join(map(str, range(i, i + 40_000))) for i in range(3)]])
    found = read(text.encode())
    assert found.columns.tolist() == names
    assert found.iloc[2].tolist() == list(range(2, 40_002))
    with pytest.raises(TableError, match="two columns are called 'column number 7'"):
        read(gzip.compress(text.replace("number 39999", "number 7").encode()))


def test_a_name_longer_than_names_may_be_is_an_error_in_words():
    with pytest.raises(TableError, match="its first line cannot be read as names of columns"):
        read(b"a" * 200_000 + b",b\n1,2\n", format="csv")


@pytest.mark.long
def test_an_error_in_a_long_table_ends_the_program_with_its_code(tmp_path):
    lines = [b"a,b,c,d", *[b"%d,1.5,2.5,some words to fill the line" % i for i in range(400_000)]]
    program = "import sys\nfrom mercer.tables import read_table\ntry:\n    read_table(sys.argv[1])\n"
    program += "except ValueError as error:\n    sys.exit(f'{error}')"
    failures = []
    for place in (10, 1000, 250_000):
        wrong = [*lines[:place], lines[place] + b",5", *lines[place + 1 :]]
        (tmp_path / "long.csv").write_bytes(b"\n".join(wrong))
        for _ in range(20):
            try:
                done = subprocess.run(
                    [sys.executable, "-c", program, "long.csv"],
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                    timeout=60,
                )
            except subprocess.TimeoutExpired:
                failures.append("does not end")
                continue
            if done.returncode != 1 or not re.fullmatch(rf".*line {place + 1:,} has 5 cells.*\n", done.stderr):
                failures.append(f"exit code {done.returncode}: {done.stderr}")
    sys.stdout.write(f"60 runs: {len(failures)} failures\n")
    assert failures == []


def test_no_thread_reads_on_when_a_table_is_left(tmp_path):
    (tmp_path / "long.csv").write_bytes(b"a,b\n" + b"1,some words to fill the line\n" * 200_000)
    with open(tmp_path / "long.csv", "rb") as file:
        next(read_pieces(file, 100))
        place = file.tell()
        assert place < 4 * 2**20  # one block, not all that a thread can get
        time.sleep(0.2)
        assert file.tell() == place


def test_files_that_are_none(tmp_path):
    with pytest.raises(TableError, match=r"nowhere\.csv': there is no such file"):
        read_table(tmp_path / "nowhere.csv")
    with pytest.raises(TableError, match="this is a folder, not a file"):
        read_table(tmp_path)
    with pytest.raises(ValueError, match="rows=0 must be a whole number >= 1"):
        read_table(tmp_path, rows=0)
    with pytest.raises(ValueError, match=r"rows=2\.5 must be a whole number >= 1"):
        next(read_pieces(tmp_path, 2.5))


def test_damage_anywhere_is_an_error_or_a_table():
    packed = gzip.compress(LONG)
    for place in range(0, len(packed), 997):
        damaged = bytearray(packed)
        damaged[place] ^= 0xFF
        try:
            found = read(bytes(damaged))
        except TableError:
            continue
        same(found, read(LONG))  # such as a flipped bit of the time stamp


# -- standard input, and memory ---------------------------------------------------------------------------

PROGRAM = """
import resource, sys
from mercer.tables import read_pieces
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
rows = 0
for i, piece in enumerate(read_pieces("-", 50_000)):
    rows += len(piece)
    first = peak() if i == 1 else first if i else 0
print(rows, int(piece["b"].iloc[-1]), peak() - first)
"""


def test_a_million_rows_from_standard_input_in_bounded_memory():
    block = b"".join(b"%d,%d,some words to fill the line %d\n" % (i, i * 7919 % 10007, i % 13) for i in range(10_000))
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        packed = gzip.compress(block, 1)  # the members of a gzip file may be many
        child.stdin.write(gzip.compress(b"a,b,c\n"))
        for _ in range(100):
            child.stdin.write(packed)
        child.stdin.close()
        rows, last, more = map(int, child.stdout.read().split())
    assert (rows, last) == (1_000_000, 9999 * 7919 % 10007)
    assert more < 40  # MB beyond those for two pieces; the text itself has 45, the whole table more
