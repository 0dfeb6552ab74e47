import datetime
import gzip
import io
import json
import sys
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from cases import each
from mercer.tables import TableEncoder, TableError, read_pieces, read_table, records

TABLE = pd.DataFrame(
    {
        "whole": np.arange(300) % 9,
        "size": np.random.default_rng(0).normal(size=300).round(6),  # openpyxl writes 16 digits
        "job": ["smith", "baker, small", 'the "clerk"', "Größe\nat night", None] * 60,
        "gaps": [1.5, np.nan, 2.0] * 100,
        "when": ["2020-01-02", "2020-03-04"] * 150,
        "late": [None] * 250 + [7.0] * 50,
    }
)


def json_lines(table):
    rows = ({k: v for k, v in row.items() if v == v and v is not None} for row in table.to_dict("records"))
    return "\n".join(map(json.dumps, rows)).encode()


def workbook(**sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def one_sheet(table):
    return workbook(Sheet=[list(table.columns), *table.astype(object).where(table.notna(), None).to_numpy().tolist()])


def edited(data, old, new):
    """Return a workbook with something else in the XML of its first sheet."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as parts, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name in parts.namelist():
            text = parts.read(name)
            assert old in text or "sheet1" not in name
            made.writestr(name, text.replace(old, new) if "sheet1" in name else text)
    return out.getvalue()


def read(data, **options):
    return read_table(io.BytesIO(data), **options)


def same(found, wanted):
    assert_frame_equal(found, wanted, check_dtype=False, check_exact=True)


# -- the same table ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("packing", ["", ".gz"])
@pytest.mark.parametrize("ending", [".jsonl", ".ndjson", ".xlsx", ""])
def test_a_table_is_that_of_csv(tmp_path, monkeypatch, ending, packing):
    monkeypatch.setattr(records, "BLOCK", 5_000)
    monkeypatch.setattr(records, "_SHEET_BATCH", 70)
    wanted = read(TABLE.to_csv(index=False).encode())
    data = one_sheet(TABLE) if ending == ".xlsx" else json_lines(TABLE)
    path = tmp_path / f"table{ending}{packing}"
    path.write_bytes(gzip.compress(data) if packing else data)
    same(read_table(path), wanted)
    pieces = list(read_pieces(path, 90))
    assert [len(piece) for piece in pieces] == [90, 90, 90, 30]
    same(pd.concat(pieces), wanted)
    encoder = TableEncoder().fit(wanted.drop(columns="late"))
    assert np.array_equal(np.concatenate([encoder.transform(piece) for piece in pieces]), encoder.transform(wanted))


TEXTS = st.text(st.characters(exclude_characters="\0"), max_size=5)  # a NUL in CSV is refused
CELLS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_infinity=False), TEXTS, st.just("?"))


@given(st.lists(st.dictionaries(st.sampled_from("abc"), CELLS, min_size=1), min_size=1, max_size=8))
def test_any_json_lines_are_read_as_the_texts_of_csv(rows):
    found = read("\n".join(map(json.dumps, rows)).encode())
    assert found.columns.tolist() == list(dict.fromkeys(name for row in rows for name in row))
    for name in found:
        csv = [pd.NA if row.get(name) is None else str(row[name]) for row in rows]
        text = pd.DataFrame({name: csv, "z": "end"}).to_csv(index=False, na_rep="").encode("utf-8", "replace")
        if not any("\n" in str(cell) or "\r" in str(cell) for cell in csv):  # within a batch of the CSV reader
            same(found[[name]], read(text, format="csv")[[name]])


def test_numbers_of_json_are_exact_and_halves_of_letters_are_question_marks():
    found = read(b'{"n": 9007199254740993, "s": "\\ud83d\\ude00", "\\ud83d": "a\\ud83d"}\n{"n": 1, "s": 1.50}')
    assert found["n"].tolist() == [2**53 + 1, 1]
    assert found["s"].tolist() == ["😀", "1.50"]
    assert found["?"].tolist()[0] == "a?"


def test_cells_of_excel():
    at = datetime.datetime(2020, 1, 2)
    rows = [
        [None],
        ["age", None, "when", 2020, "x", "at"],
        [],
        [31, "at 00:00:00", at, 1.5, " ? ", datetime.time(6)],
        [" 4 ", True, at.replace(hour=3), "#N/A", "007", datetime.timedelta(minutes=2)],
        [None, "  "],
    ]
    found = read(workbook(Sheet=rows))
    assert found.columns.tolist() == ["age", "column 2", "when", "2020", "x", "at"]
    wanted = [
        [31, "at 00:00:00", "2020-01-02", 1.5, None, "06:00:00"],
        [4, "True", "2020-01-02 03:00:00", None, 7.0, "120.0"],
    ]
    assert found.astype(object).where(found.notna(), None).to_numpy().tolist() == wanted


def test_sheets_are_chosen_by_name_and_the_first_is_read_otherwise():
    book = workbook(first=[["a", "b"], [1, 2]], second=[["c"], [3]], empty=[])
    assert read(book).columns.tolist() == ["a", "b"]
    assert next(read_pieces(io.BytesIO(book), sheet="second")).columns.tolist() == ["c"]


def test_what_excel_says_of_its_size_is_not_believed():
    book = one_sheet(TABLE[["whole", "size"]])
    for dimension in (b"A1:A1", b"A1:XFD1048576"):
        same(read(edited(book, b"A1:B301", dimension)), TABLE[["whole", "size"]])


# -- what is wrong ----------------------------------------------------------------------------------------

BOOK = workbook(People=[["a", "b"], [1, "u"], [2, "v"]], Notes=[])
LAUGHS = b'<!DOCTYPE l [<!ENTITY a "' + b"ha" * 100 + b'">' + b"".join(
    b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 100) for i in range(5)
) + b"]><worksheet"  # fmt: skip


@each(
    ("data", "options", "words"),
    [
        (b'{"a": 1}\n{"a": {"b": 1}}', {}, "line 2 holds an object in column 'a'. Give each of its values a column"),
        (b'{"a": 1}\n\n{"a": []}', {}, "line 3 holds a list in column 'a'"),
        (b'{"a": 1}\n[1]', {}, "line 2 is no JSON object, such as {\"age\": 31, \"job\": \"smith\"}: '[1]'"),
        (b'[{"a": 1}]', {"format": "jsonl"}, "line 1 is no JSON object"),
        (b'{"a": 1}\n{"a": ', {}, "line 2 is no whole JSON object (Expecting value): '{\"a\":'"),
        (b'{"a": 1}\n{"a": ' + b"[" * 10**6, {}, "line 2 is no whole JSON object (maximum recursion depth"),
        (b'{"a": 1, "a": 2}', {}, "line 1 names 'a' twice"),
        (b'{"a": "\xe9"}', {}, "line 1 is not utf-8: it holds the byte 0xE9"),
        (b'{"a": 1}', {"format": "csv"}, "it is a file of jsonl, not of csv. Pass format='jsonl'"),
        (b"a,b\n1,2", {"format": "jsonl"}, "line 1 is no whole JSON object"),
        (b"{}\n{}", {}, "no rows"),
        (b'{"a": "' + b"x" * 2**26 + b'"}', {}, "line 1 is longer than 64 MB"),
        (json.dumps(dict.fromkeys(map(str, range(9999)))).encode() + b"\n{}" * 9999, {}, "have 9,999 names, and few"),
        (BOOK, {"sheet": "people"}, "it has no sheet 'people'; its sheets are 'People', 'Notes'"),
        (BOOK, {"sheet": "Notes"}, "its sheet 'Notes' is empty; its sheets are 'People', 'Notes'"),
        (BOOK, {"format": "csv"}, "it is a file of xlsx, not of csv. Pass format='xlsx'"),
        (b"a,b\n1,2", {"sheet": "People"}, "sheet='People' is for workbooks of Excel, and this is a file of txt"),
        (b"a,b\n1,2", {"format": "xlsx"}, "it is no file of xlsx"),
        (b"\xd0\xcf\x11\xe0" + bytes(99), {}, "it is a workbook of an old Excel, or has a password"),
        (workbook(A=[["a", "b"], [1], [2, 3, 4]]), {}, "row 3 of its sheet 'A' has 3 cells where the first row names"),
        (workbook(A=[[1, 2], [3, 4]]), {}, "its first line holds numbers only"),
        (workbook(A=[["a", "a"], [3, 4]]), {}, "two columns are called 'a'"),
        (workbook(A=[["a", "b"]]), {}, "it has names of columns, but no rows"),
        (BOOK[:-20], {}, "it cannot be read as a workbook of Excel (BadZipFile"),
        (edited(BOOK, b"</row>", b""), {}, "it cannot be read as a workbook of Excel (ParseError"),
        (edited(BOOK, b'r="3"', b'r="1000000000"'), {}, "its sheet 'People' has more rows than Excel knows"),
        (edited(BOOK, b'r="B3"', b'r="ZZZ3"'), {}, "row 3 of its sheet 'People' has 18,278 cells"),
        (edited(BOOK, b"</sheetData>", b"<c/>" * 2**25 + b"</sheetData>"), {}, "times its size, as no table does"),
        (edited(edited(BOOK, b"<worksheet", LAUGHS), b"<v>2", b"<v>&f;"), {}, "limit on input amplification factor"),
    ],
)  # fmt: skip
def test_errors_are_sentences(data, options, words):
    with pytest.raises(TableError) as caught:
        read(data, **options)
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")
    with pytest.raises(TableError):
        list(read_pieces(io.BytesIO(data), 3, **options))


def test_without_openpyxl_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"which openpyxl reads\. Install that, as in pip install openpyxl, or save"):
        read(BOOK)


def test_damage_anywhere_is_an_error_or_a_table():
    book, lines = one_sheet(TABLE[:40]), json_lines(TABLE[:40])
    for whole, step in ((book, 97), (lines, 61)):
        for place in range(0, len(whole), step):
            damaged = bytearray(whole)
            damaged[place] ^= 0xFF
            try:
                found = read(bytes(damaged))
            except TableError:
                continue
            assert len(found) <= len(TABLE)
