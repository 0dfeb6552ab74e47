import html
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, r2_score

import mercer as library
from cli.conftest import fitted
from mercer.io import facts
from strings_table import notes

QUICK = ("--kernel", "RBF(2)")


def words(text):
    return " ".join(re.sub(r"[─│├└]", " ", text).split())


def test_it_tells_everything_that_was_done(mercer, data, tmp_path):
    done = mercer("fit", data / "people.csv", "--target", "buys", "--report", "people.html")
    assert done.returncode == 0, done.stderr
    shown = done.stdout
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 100
    assert [line for line in shown.splitlines() if line and line[0].isalpha()] == [
        "Data", "Columns", "Search", "Choice", "Kernel", "Scores", "Certificate", "Time", "Written",
    ]  # fmt: skip
    told = words(shown)
    assert "160 rows, 8 columns" in told
    assert "Learning from 128 rows, testing on 32 drawn at random (seed 0)." in told
    for column in ("name", "age", "job", "wealth", "joined", "planet", "spent"):
        assert re.search(rf"^ +{column} ", shown, re.MULTILINE)
    model = library.load(tmp_path / "people.mercer")
    assert words(repr(model.kernel_)) in told
    assert "proven" in told
    assert re.search(r"accuracy +[\d.]+ ± [\d.]+", shown)
    assert "model people.mercer" in told
    page = (tmp_path / "people.html").read_text(encoding="utf-8")
    assert "<html" in page
    assert "mercer fit" in page


def test_the_json_is_what_the_model_file_says(buys):
    path, told = buys
    known = facts(path)
    assert {name: told[name] for name in known} == known
    assert told["model"] == str(path)
    assert told["task"] == "classify"
    assert told["classes"] == ["no", "yes"]
    assert (told["train_rows"], told["test_rows"]) == (128, 32)
    assert told["certificate"]["converged"]
    kinds = {column["name"]: column["kind"] for column in told["columns"]}
    assert kinds["age"] == "number"
    assert kinds["job"] == "category"
    assert kinds["joined"] == "date"
    assert kinds["planet"] == "constant"
    assert "spent" not in kinds
    assert "mercer fit" in told["command"]


def test_the_scores_are_those_of_the_rows_kept_back(data, buys, spent):
    table = pd.read_csv(data / "people.csv")
    for path, told in (buys, spent):
        model = library.load(path)
        target = told["target"]
        rest = table.drop(columns=[target])
        score = accuracy_score if told["task"] == "classify" else r2_score
        name = "accuracy" if told["task"] == "classify" else "R²"
        from sklearn.model_selection import train_test_split

        y = table[target].to_numpy()
        strata = y if told["task"] == "classify" else None
        _, rows = train_test_split(np.arange(len(y)), test_size=32, random_state=0, stratify=strata)
        assert told["scores"][name]["value"] == pytest.approx(score(y[rows], model.predict(rest.iloc[rows])), abs=1e-12)
        assert told["scores"][name]["error"] > 0


def test_the_models_are_better_than_saying_the_usual(buys, spent):
    assert buys[1]["scores"]["accuracy"]["value"] > 0.7
    assert spent[1]["scores"]["R²"]["value"] > 0.7


@pytest.fixture(scope="module")
def of_csv(server, data):
    """What a fit to the table as CSV says, and what its model predicts."""
    path, told = fitted(server, data, "spent", *QUICK, out="csv.mercer")
    return told, library.load(path).predict(pd.read_csv(data / "new.csv"))


@pytest.mark.parametrize(
    "name", ["people.tsv", "people.csv.gz", "people.jsonl", "people.xlsx", "people.parquet", "people.feather", "-"]
)
def test_every_format_gives_the_same_model(mercer, of_csv, data, tmp_path, name):
    stdin = (data / "people.csv.gz").read_bytes() if name == "-" else b""
    source = name if name == "-" else data / name
    sheet = ("--sheet", "People") if name == "people.xlsx" else ()
    done = mercer("fit", source, "-y", "spent", *QUICK, "--out", "m.mercer", "--json", *sheet, stdin=stdin)
    assert done.returncode == 0, done.stderr
    told, (expected, predicted) = json.loads(done.stdout), of_csv
    assert told["digest"] == expected["digest"]
    assert told["scores"] == expected["scores"]
    assert np.array_equal(library.load(tmp_path / "m.mercer").predict(pd.read_csv(data / "new.csv")), predicted)


def test_an_encoding_is_asked_for_in_every_command_and_not_remembered(mercer, refused, data, tmp_path):
    table = pd.read_csv(data / "people.csv").replace({"job": {"smith": "orfèvre"}})
    files = {"utf8.csv": "utf-8", "marked.csv": "utf-8-sig", "utf16.csv": "utf-16", "cp.csv": "windows-1252"}
    for name, encoding in files.items():
        table.to_csv(tmp_path / name, index=False, encoding=encoding)
    asked = ("--encoding", "windows-1252")
    digests = set()
    for name in files:
        fit = ("fit", name, "-y", "spent", *QUICK, "--test-size", "0", "--out", "m.mercer", "--json")
        if name == "cp.csv":
            refused(*fit)
        done = mercer(*fit, *(asked if name == "cp.csv" else ()))
        assert done.returncode == 0, done.stderr
        digests.add(json.loads(done.stdout)["digest"])
    assert len(digests) == 1
    line = 2 + table["job"].tolist().index("orfèvre")
    for command in (("score", "m.mercer"), ("predict", "m.mercer"), ("verify", "m.mercer"), ("check", "RBF(1)")):
        assert refused(*command, "cp.csv") == (
            f"mercer: 'cp.csv': line {line} is not utf-8: it holds the byte 0xE8. Say its encoding, as in "
            "--encoding windows-1252 (encoding='windows-1252' in Python).\n"
        )
        done = mercer(*command, "cp.csv", *asked)
        assert done.returncode == 0, done.stderr
        assert done.stdout == mercer(*command, "utf8.csv").stdout.replace("utf8.csv", "cp.csv")


def test_a_sheet_is_named_in_every_command(mercer, refused, data, spent):
    for command in (("score", spent[0]), ("predict", spent[0]), ("verify", spent[0]), ("check", "RBF(1)")):
        done = mercer(*command, data / "people.xlsx", "--sheet", "People")
        assert done.returncode == 0, done.stderr
        assert done.stdout == mercer(*command, data / "people.csv").stdout.replace("people.csv", "people.xlsx")
        sentence = refused(*command, data / "people.xlsx", "--sheet", "Persons")
        assert "it has no sheet 'Persons'; its sheets are 'Notes', 'People'." in sentence
    assert "has no column 'spent'" in refused("score", spent[0], data / "people.xlsx")
    assert "sheet='People' is for workbooks" in refused("check", "RBF(1)", data / "people.csv", "--sheet", "People")


def test_svmlight_has_a_target_without_a_name(mercer, data, tmp_path):
    done = mercer("fit", data / "signs.svm", *QUICK, "--out", "s.mercer", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["target"], told["task"], told["classes"]) == ("target", "classify", [-1, 1])
    done = mercer("predict", "s.mercer", data / "signs.svm")
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"prediction", "-1", "1"}


def test_test_rows_of_their_own(mercer, data):
    done = mercer("fit", data / "people.csv", "-y", "buys", "--test", data / "new.csv", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["train_rows"], told["test_rows"]) == (160, 60)
    again = mercer("score", "people.mercer", data / "new.csv", "--json")
    assert json.loads(again.stdout)["scores"]["accuracy"] == told["scores"]["accuracy"]


def test_no_test_rows(mercer, data):
    done = mercer("fit", data / "people.csv", "-y", "buys", "--test-size", "0", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "there are no test rows" in done.stdout
    assert "test rows  " not in done.stdout


def test_rows_without_a_target_are_left_out_and_this_is_said(mercer, data, tmp_path):
    table = pd.read_csv(data / "people.csv")
    table.loc[[3, 5, 9], "buys"] = None
    table.to_csv(tmp_path / "gaps.csv", index=False)
    done = mercer("fit", "gaps.csv", "-y", "buys", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "3 rows without a target were dropped" in words(done.stdout)
    assert "Learning from 126 rows" in done.stdout


def test_a_kernel_may_name_columns(mercer, data):
    kernel = 'RBF(1).on("age") * RBF(1).on("job") + Linear().on("wealth")'
    done = mercer("fit", data / "people.csv", "-y", "spent", "--kernel", kernel, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kernel"].count(".on(") == 3
    assert told["scores"]["R²"]["value"] > 0.7


def test_a_bare_name_is_tried_at_several_scales(mercer, data):
    done = mercer("fit", data / "people.csv", "-y", "buys", "--kernel", "Laplacian", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kernel"].startswith("Laplacian(scale=")
    assert "Laplacian at" in told["account"]


def test_the_seed_decides(mercer, data):
    def digest(seed):
        done = mercer("fit", data / "people.csv", "-y", "spent", *QUICK, "--seed", seed, "--json")
        return json.loads(done.stdout)["digest"]

    assert digest(0) == digest(0) != digest(1)


def test_the_program_in_the_report_does_the_same(mercer, data, tmp_path, monkeypatch):
    from mercer.cli.fit import Teller
    from mercer.cli.training import Settings, train

    monkeypatch.chdir(tmp_path)
    pd.read_csv(data / "people.csv").to_csv("people.data", index=False, encoding="utf-16-le")
    settings = Settings("people.data", "buys", kernels=[library.RBF(2.0)], out=tmp_path / "m.mercer")
    settings.reading = {"format": "csv", "encoding": "utf-16-le"}
    made = train(settings, Teller(None), [])
    X = pd.read_csv(data / "new.csv")
    expected = library.load("m.mercer").decision_function(X)
    (tmp_path / "m.mercer").unlink()
    exec(made.python.replace("print(", "str("), {})
    assert np.array_equal(library.load("m.mercer").decision_function(X), expected)


# -- what cannot be done ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nowhere.csv", None, "no such file"),
        ("empty.csv", b"", "empty"),
        ("names.csv", b"a,b,buys\n", "no rows"),
        ("ragged.csv", b"a,buys\n1,2\n3,4,5\n" + b"1,2\n" * 30, "line 3"),
        ("noise.csv", bytes(range(256)) * 4, "text"),
        ("cut.csv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03abc", "decompressed"),
        ("not.parquet", b"a,b\n1,2\n", "parquet"),
        ("twice.csv", b"a,a,buys\n1,2,3\n", "'a'"),
        ("one.csv", b"a,buys\n" + b"1,yes\n2,yes\n" * 20, "yes in all 40 rows"),
        ("alone.csv", b"buys\n" + b"yes\nno\n" * 20, "no column beside"),
        ("void.csv", b"a,buys\n" + b"1,\n2,\n" * 20, "no values"),
        ("two.csv", b"a,buys\n1,yes\n2,no\n", "2 rows"),
        ("same.csv", b"a,buys\n" + b"1,yes\n1,no\n" * 20, "nothing to learn from"),
    ],
)
def test_tables_that_cannot_be_used(refused, tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    sentence = refused("fit", name, "--target", "buys")
    assert said in sentence
    assert not list(tmp_path.glob("*.mercer"))


def test_nothing_on_standard_input(refused):
    assert "standard input" in refused("fit", "-", "--target", "y")


def test_a_column_that_is_not_there(refused, data):
    assert "did you mean 'buys'?" in refused("fit", data / "people.csv", "--target", "bys")
    assert "did you mean 'buys'?" in refused("fit", data / "people.csv", "--target", "BUYS")
    assert "name, age, job" in refused("fit", data / "people.csv", "--target", "zzz")
    assert "name, age, job" in refused("fit", data / "people.csv")
    assert "to drop" in refused("fit", data / "people.csv", "--target", "buys", "--drop", "wage")
    sentence = refused("fit", data / "people.csv", "--target", "buys", "--kernel", 'RBF(1).on("wage")')
    assert "'wage'" in sentence


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--time", "soon"), "soon"),
        (("--time", "0s"), "0s"),
        (("--cv", "1"), "--cv"),
        (("--test-size", "1.5"), "1.5"),
        (("--task", "guess"), "guess"),
        (("--out", "no/where.mercer"), "no folder"),
        (("--report", "."), "folder"),
        (("--test", "none.csv"), "none.csv"),
        (("--colour", "red"), "--colour"),
        (("--task", "regress"), "classify"),
    ],
)
def test_options_that_cannot_be_used(refused, data, options, said):
    assert said in refused("fit", data / "people.csv", "--target", "buys", *options)


def test_an_expression_is_shown_with_the_place(refused, data):
    sentence = refused("fit", data / "people.csv", "-y", "buys", "--kernel", "RBF(2) + Linar()", lines=3)
    assert "did you mean Linear?" in sentence
    text, mark = sentence.splitlines()[1:]
    assert text[mark.index("^") :].startswith("Linar")


def test_expressions_are_never_run(refused, data, tmp_path):
    for text in ("__import__('os').mkdir('hacked')", "open('hacked','w')", "RBF(exec('1'))"):
        refused("fit", data / "people.csv", "-y", "buys", "--kernel", text, lines=3)
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize(("column", "kernel"), [("note", "TextNGrams"), ("gene", "GappedKmers")])
def test_a_column_of_strings_from_a_file_to_predictions(mercer, tmp_path, column, kernel):
    table, labels, _ = notes(120)
    table = table[["age", column]].assign(label=labels if column == "note" else table["gene"].str.contains("TATAATGC"))
    table.to_csv(tmp_path / "notes.csv", index=False)
    done = mercer("fit", "notes.csv", "-y", "label", "--report", "notes.html", "--time", "20s")
    assert done.returncode == 0, done.stderr
    assert kernel in done.stdout
    assert "compared as they are" in words(done.stdout)
    assert "<svg" in (tmp_path / "notes.html").read_text(encoding="utf-8")
    assert mercer("predict", "notes.mercer", "notes.csv", "--proba", "--out", "p.csv").returncode == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == 120
    assert mercer("verify", "notes.mercer", "notes.csv").returncode == 0
    assert kernel in mercer("show", "notes.mercer").stdout


# -- tables with a bit of everything ----------------------------------------------------------------------

NOTE, GENE = 'Größe, "note" [1]', "the gene's seq"


def everything(n=120):
    """Numbers, dates, truths, categories with and without order, prose, DNA, a constant, numbers of rows; with gaps."""
    table, labels, _ = notes(n)
    rng = np.random.default_rng(1)
    table["since"] = pd.date_range("2019-01-01", periods=n, freq="3D").strftime("%Y-%m-%d")
    table["member"] = pd.array(rng.random(n) < 0.5, dtype="boolean")
    table["size"] = pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L", "XL"], ordered=True)
    table["town"] = rng.choice(["Delft", "Gouda", "Urk"], n)
    table = table.drop(columns="user").rename(columns={"note": NOTE, "gene": GENE})
    for column in table.columns:
        table.loc[rng.random(n) < 0.06, column] = None
    return table.assign(country="NL", row_id=np.arange(n), label=labels)


@pytest.fixture(scope="module")
def mixed(server, tmp_path_factory):
    """A folder with such a table and a model of it, and what the fit said."""
    folder = tmp_path_factory.mktemp("mixed")
    everything().to_parquet(folder / "all.parquet")
    done = server.run("fit", "all.parquet", "-y", "label", "--cv", "3", "--report", "all.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_no_column_is_dropped_without_a_word(mixed):
    folder, done = mixed
    said = words(done.stdout)
    for sentence in (
        "dropped; it is NL in all",
        "dropped; 96 whole numbers, no two alike, number the rows.",
        "4 levels in order (S < M < L < XL), their ranks as numbers, standardised;",
        "Each of the first 9, of the strings, is also tried with RBF of the numbers",
    ):
        assert sentence in said, said
    for column in everything().columns.drop("label"):
        assert column in said
    page = (folder / "all.html").read_text(encoding="utf-8")
    assert "ordered category" in page
    assert f".on([{NOTE!r}])" in html.unescape(page)
    assert not re.search(r"\.on\(\[\d", html.unescape(page))  # no column by its number


def test_it_predicts_scores_and_verifies(mixed, server):
    folder, _ = mixed
    for command in ("verify", "score"):
        assert server.run(command, "all.mercer", "all.parquet", cwd=folder).returncode == 0
    shown = words(server.run("show", "all.mercer", cwd=folder).stdout)
    assert "Compared as strings: Größe," in shown
    assert "TextNGrams(" in shown


def changed(**columns):
    """Return rows to predict with some columns exchanged, as a CSV file has them."""
    return everything().drop(columns="label").head(4).assign(**columns)


HOSTILE = {
    "as they were": changed(),
    "empty texts": changed(**{NOTE: ""}),
    "no text at all": changed(**{NOTE: None, GENE: None}),
    "numbers for texts": changed(**{NOTE: [1, 2, 3, 4]}),
    "numbers for DNA": changed(**{GENE: [1.5, 2.0, 3.0, 4.0]}),
    "lower case, N and other letters": changed(**{GENE: ["acgtnnacgtac", "ACGTNNNN", "XYZ Q", "a"]}),
    "longer than in training": changed(**{GENE: "ACGTTATAATGC" * 60}),
    "lines, quotes and other alphabets": changed(**{NOTE: 'márgin ☃ "日本", and\nmore'}),
    "one row": changed().head(1),
    "other columns in another order": changed(other=1.0)[changed(other=1.0).columns[::-1]],
}


@pytest.mark.parametrize("rows", HOSTILE.values(), ids=HOSTILE)
def test_hostile_rows_are_predicted(mixed, server, tmp_path, rows):
    rows.to_csv(tmp_path / "new.csv", index=False)
    done = server.run("predict", mixed[0] / "all.mercer", "new.csv", "--proba", "--out", "p.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(tmp_path / "p.csv")
    assert len(found) == len(rows)
    assert np.isfinite(found["probability_keep"]).all()
    assert "note" not in done.stderr.replace(NOTE, "")  # nothing that a reader must be told


def test_categories_of_test_rows_that_the_fit_has_not_seen_are_noted_once(mercer, data, tmp_path):
    pd.read_csv(data / "new.csv").assign(job="poet").to_csv(tmp_path / "test.csv", index=False)
    done = mercer("fit", data / "people.csv", "-y", "buys", "--test", "test.csv", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("'job': 60 rows have categories that fit has not seen, such as 'poet'") == 1
    assert sum("'job'" in note for note in json.loads(done.stdout)["notes"]) == 1


def test_levels_never_declared_are_said_to_be_missing(mixed, server, tmp_path):
    changed(size=["XXL", "S", None, "XL"]).to_csv(tmp_path / "new.csv", index=False)
    done = server.run("predict", mixed[0] / "all.mercer", "new.csv", "--out", "p.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert "note: 'size': 1 cell is no known level, such as 'XXL'. It counts as missing." in words(done.stderr)


def test_a_column_that_is_gone_is_named(mixed, server, tmp_path):
    changed().drop(columns=NOTE).to_csv(tmp_path / "new.csv", index=False)
    done = server.run("predict", mixed[0] / "all.mercer", "new.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert f"new.csv has no column {NOTE!r}" in words(done.stderr)
