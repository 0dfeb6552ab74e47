import gzip
import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import typer

import mercer as library


def table(text):
    return pd.read_csv(io.StringIO(text))


def test_predictions_are_those_of_the_model(mercer, data, buys, spent, tmp_path):
    X = pd.read_csv(data / "new.csv")
    for path, _ in (buys, spent):
        done = mercer("predict", path, data / "new.csv", "--out", "p.csv", "--force")
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert "60 rows predicted" in done.stderr
        found = pd.read_csv(tmp_path / "p.csv")
        assert list(found.columns) == ["prediction"]
        assert np.array_equal(found["prediction"].to_numpy(), library.load(path).predict(X))


def test_labels_are_written_as_they_stand_in_the_file(mercer, tmp_path):
    labels = ["true", "$1,000"] * 15
    rows = [f'{4 * (i % 2) + i / 30},"{label}"' for i, label in enumerate(labels)]
    (tmp_path / "d.csv").write_text("\n".join(["x,y", *rows]))
    done = mercer("fit", "d.csv", "--target", "y", "--kernel", "RBF(1)", "--cv", "2", "--test-size", "0")
    assert done.returncode == 0, done.stderr
    assert table(mercer("predict", "d.mercer", "d.csv").stdout)["prediction"].tolist() == labels


def test_to_and_from_pipes(mercer, data, spent):
    plain = mercer("predict", spent[0], data / "new.csv")
    assert plain.stderr == ""
    for stdin in ((data / "new.csv").read_bytes(), gzip.compress((data / "new.csv").read_bytes())):
        piped = mercer("predict", spent[0], "-", stdin=stdin)
        assert (piped.returncode, piped.stdout) == (0, plain.stdout), piped.stderr


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.parquet", "p.feather"])
def test_every_format_of_predictions(mercer, data, spent, tmp_path, name):
    done = mercer("predict", spent[0], data / "new.csv", "--keep", "name", "--out", name)
    assert done.returncode == 0, done.stderr
    reader = {"parquet": pd.read_parquet, "feather": pd.read_feather}.get(name.split(".")[-1], pd.read_csv)
    found = reader(tmp_path / name, **({"sep": "\t"} if name.endswith(".tsv") else {}))
    X = pd.read_csv(data / "new.csv")
    assert list(found["name"]) == list(X["name"])
    assert np.array_equal(found["prediction"].to_numpy(), library.load(spent[0]).predict(X))
    assert [path.name for path in tmp_path.iterdir()] == [name]  # no drafts are left


def test_probabilities_and_margins(mercer, data, buys):
    X = pd.read_csv(data / "new.csv")
    model = library.load(buys[0])
    found = table(mercer("predict", buys[0], data / "new.csv", "--proba").stdout)
    assert list(found.columns) == ["prediction", "probability_no", "probability_yes"]
    assert np.allclose(found.iloc[:, 1:].sum(axis=1), 1)
    assert np.array_equal(found.iloc[:, 1:].to_numpy(), model.predict_proba(X))
    found = table(mercer("predict", buys[0], data / "new.csv", "--margins").stdout)
    assert np.array_equal(found["margin"].to_numpy(), model.decision_function(X))
    assert np.array_equal(found["margin"] > 0, found["prediction"] == "yes")


def test_quantiles(mercer, data, spent):
    found = table(mercer("predict", spent[0], data / "new.csv", "--quantiles", "0.1,0.5,0.9").stdout)
    assert list(found.columns) == ["prediction", "quantile_0.1", "quantile_0.5", "quantile_0.9"]
    assert (found["quantile_0.1"] < found["quantile_0.9"]).all()
    truth = pd.read_csv(data / "new.csv")["spent"]
    inside = ((found["quantile_0.1"] <= truth) & (truth <= found["quantile_0.9"])).mean()
    assert inside > 0.55  # 80% are meant; 60 rows of another draw


def test_adaptive_quantiles(mercer, data, spent):
    asked = ("predict", spent[0], data / "new.csv", "--quantiles", "0.1,0.9")
    plain, adaptive = table(mercer(*asked).stdout), table(mercer(*asked, "--adaptive").stdout)
    assert list(adaptive.columns) == list(plain.columns)
    expected = library.load(spent[0]).predict_quantiles(pd.read_csv(data / "new.csv"), [0.1, 0.9], adaptive=True)
    assert np.array_equal(adaptive[["quantile_0.1", "quantile_0.9"]].to_numpy(), expected)


def test_what_the_data_may_lack_and_have(mercer, data, spent, tmp_path):
    new = pd.read_csv(data / "new.csv")
    plain = table(mercer("predict", spent[0], data / "new.csv").stdout)
    shuffled = new[new.columns[::-1]].drop(columns=["spent", "buys", "planet", "name"]).assign(extra=1)
    shuffled.to_csv(tmp_path / "other.csv", index=False)
    assert table(mercer("predict", spent[0], "other.csv").stdout).equals(plain)
    strange = new.assign(job=["astronaut", None] * 30)
    strange.to_csv(tmp_path / "strange.csv", index=False)
    done = mercer("predict", spent[0], "strange.csv")
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "note: 'job': 30 rows have categories that fit has not seen, such as 'astronaut'. They count as none of those "
        "seen, equally far from each.\n"
    )
    assert np.isfinite(table(done.stdout)["prediction"]).all()
    wrong = new.assign(age=["old"] + ["30"] * 59)
    wrong.to_csv(tmp_path / "wrong.csv", index=False)
    done = mercer("predict", spent[0], "wrong.csv", "--out", "p.csv", "--json")
    assert done.returncode == 0, done.stderr
    assert "note: 'age': 1 cell is no number" in done.stderr
    assert "'age'" in json.loads(done.stdout)["notes"][0]


def test_pieces_give_what_the_whole_gives(data, buys, monkeypatch, capsys):
    from mercer.cli import predict, rows

    monkeypatch.setattr(rows, "ROWS", 7)
    predict.predict(str(buys[0]), str(data / "new.csv"), proba=True)
    found = table(capsys.readouterr().out)
    X = pd.read_csv(data / "new.csv")
    assert np.allclose(found.iloc[:, 1:].to_numpy(), library.load(buys[0]).predict_proba(X), rtol=0, atol=1e-12)


def test_strange_cells_of_all_pieces_are_noted_once(data, buys, tmp_path, monkeypatch, capsys):
    from mercer.cli import predict, rows, saved

    monkeypatch.setattr(rows, "ROWS", 7)
    table = pd.read_csv(data / "new.csv").assign(job=["smith", "poet", "king"] * 20)
    table.assign(age=["old"] + ["30"] * 50 + ["young"] * 9).to_csv(tmp_path / "new.csv", index=False)
    for run in (lambda path, new: predict.predict(path, new, proba=True), saved.score):
        run(str(buys[0]), str(tmp_path / "new.csv"))
        assert capsys.readouterr().err == (
            "note: 'age': 10 cells are no numbers, such as 'old', 'young'. They count as missing. 'job': 40 rows have "
            "categories that fit has not seen, such as 'king', 'poet'. They count as none of those seen, equally far "
            "from each.\n"
        )


def test_columns_that_come_late_are_not_copied_to_a_table_that_has_begun(data, spent, tmp_path, monkeypatch, capsys):
    from mercer.cli import predict, rows

    monkeypatch.setattr(rows, "ROWS", 7)
    monkeypatch.setattr("mercer.tables.records.BLOCK", 1000)
    new = pd.read_csv(data / "new.csv").to_json(orient="records", lines=True)
    (tmp_path / "new.jsonl").write_text(new + new[:-2] + ', "late": 1}\n')
    predict.predict(str(spent[0]), str(tmp_path / "new.jsonl"), keep=["age"])
    assert len(table(capsys.readouterr().out)) == 120
    with pytest.raises(typer.Exit):
        predict.predict(str(spent[0]), str(tmp_path / "new.jsonl"), keep=["all"])
    assert "--keep all: " in (said := capsys.readouterr().err)
    assert "has other columns after row 112 than before; name those to keep." in said


@pytest.mark.parametrize("command", ["predict {model} {new}", "kernels", "fit --help"])
def test_a_reader_that_has_seen_enough_ends_it_silently(data, spent, command):
    program = f"{sys.executable} -m mercer.cli {command.format(model=spent[0], new=data / 'new.csv')}"
    done = subprocess.run(
        ["bash", "-c", f"{program} | true; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stderr) == (141, "")


def test_texts_that_a_spreadsheet_would_run_are_guarded_where_it_is_asked(mercer, data, spent, tmp_path):
    texts = ["=1+1", "+2+3", "-sum(a)", "@a", "\tx", "-5", "plain", "it's"]
    table = pd.read_csv(data / "new.csv")[: len(texts)].assign(**{"=name": texts, "age": -1.5})
    table.to_parquet(tmp_path / "t.parquet")
    keep = ("--keep", "=name", "--keep", "age")
    plain = mercer("predict", spent[0], "t.parquet", *keep)
    assert plain.returncode == 0, plain.stderr
    assert "'" not in plain.stdout.replace("it's", "")
    found = table_of_text(mercer("predict", spent[0], "t.parquet", *keep, "--spreadsheet").stdout)
    guarded = [f"'{text}" if text[0] in "=+-@\t" and text != "-5" else text for text in texts]
    assert found["'=name"].tolist() == guarded
    assert found["age"].tolist() == ["-1.5"] * len(texts)
    assert [row["prediction"] for _, row in found.iterrows()] == table_of_text(plain.stdout)["prediction"].tolist()


def table_of_text(text):
    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)


# -- what cannot be done ----------------------------------------------------------------------------------


def test_a_missing_column_is_named(refused, data, spent, tmp_path):
    pd.read_csv(data / "new.csv").drop(columns=["wealth"]).to_csv(tmp_path / "poor.csv", index=False)
    assert "no column 'wealth', which the model was fitted to" in refused("predict", spent[0], "poor.csv")
    assert list(tmp_path.iterdir()) == [tmp_path / "poor.csv"]
    assert "to keep" in refused("predict", spent[0], data / "new.csv", "--keep", "wage", "--out", "p.csv")
    assert list(tmp_path.iterdir()) == [tmp_path / "poor.csv"]


def test_inputs_that_are_no_tables(refused, data, spent, tmp_path):
    (tmp_path / "empty.csv").write_bytes(b"")
    assert "empty" in refused("predict", spent[0], "empty.csv")
    assert "standard input" in refused("predict", spent[0], "-")
    (tmp_path / "names.csv").write_text("name,age,job,wealth,joined,planet\n")
    assert "no rows" in refused("predict", spent[0], "names.csv")


def test_files_that_are_no_models(refused, data, tmp_path):
    assert "none.mercer" in refused("predict", "none.mercer", data / "new.csv")
    (tmp_path / "bad.mercer").write_bytes(b"PK\x03\x04 nothing of ours")
    for command in (("predict", "bad.mercer", data / "new.csv"), ("show", "bad.mercer")):
        assert "bad.mercer" in refused(*command)


def test_what_a_model_does_not_give(refused, data, buys, spent):
    new = data / "new.csv"
    assert "--proba" in refused("predict", buys[0], new, "--quantiles", "0.5")
    assert "predicts numbers" in refused("predict", spent[0], new, "--proba")
    assert "0.5,2" in refused("predict", spent[0], new, "--quantiles", "0.5,2")
    assert "as in --quantiles 0.05,0.5,0.95 --adaptive" in refused("predict", spent[0], new, "--adaptive")
    assert "take one" in refused("predict", buys[0], new, "--proba", "--margins")
    assert "must end with" in refused("predict", buys[0], new, "--out", "p.xlsx")
    assert "--out FILE" in refused("predict", buys[0], new, "--json")
    assert "CSV and TSV" in refused("predict", buys[0], new, "--spreadsheet", "--out", "p.parquet")
