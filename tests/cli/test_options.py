"""Nothing that a command reads, and nothing that it has not written, is replaced unless it is asked for."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import mercer as library

QUICK = ("--kernel", "RBF(2)")


@pytest.fixture
def here(data, spent, tmp_path):
    """A folder with a table and a model."""
    (tmp_path / "t.csv").write_bytes((data / "people.csv").read_bytes())
    (tmp_path / "m.mercer").write_bytes(spent[0].read_bytes())
    return tmp_path


def spellings(folder, name):
    """Make other names of a file, and return them."""
    (folder / "soft").symlink_to(name)
    os.link(folder / name, folder / "hard")
    return [name, f"./{name}", str(folder / name), f"../{folder.name}/{name}", "soft", "hard"]


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_data_are_never_replaced_by_the_model_or_the_report(refused, here, force):
    before = (here / "t.csv").read_bytes()
    for name in spellings(here, "t.csv"):
        for option in ("--out", "--report"):
            said = refused("fit", "t.csv", "-y", "spent", *QUICK, option, name, *force)
            assert f"{option} {Path(name)} is the same file as the input t.csv, which it would replace" in said
            assert "name another file" in said
    assert (here / "t.csv").read_bytes() == before
    assert not (here / "t.mercer").exists()


def test_test_rows_and_standard_input_are_inputs_too(refused, here):
    (here / "u.csv").write_bytes((here / "t.csv").read_bytes())
    said = refused("fit", "t.csv", "-y", "spent", *QUICK, "--test", "u.csv", "--out", "u.csv")
    assert "the input u.csv" in said
    with open(here / "t.csv", "rb") as stream:
        command = [sys.executable, "-m", "mercer.cli", "fit", "-", "-y", "spent", "--out", "t.csv", "--force"]
        done = subprocess.run(command, stdin=stream, cwd=here, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert "is the same file as standard input" in done.stderr


def test_model_and_data_are_never_replaced_by_predictions(refused, here):
    (here / "model.csv").symlink_to("m.mercer")
    (here / "table.csv").symlink_to("t.csv")
    for name, other in (("model.csv", "m.mercer"), ("table.csv", "t.csv"), ("t.csv", "t.csv")):
        said = refused("predict", "m.mercer", "t.csv", "--out", name, "--force")
        assert f"the same file as the input {other}" in said
    assert library.load(here / "m.mercer")
    assert len(pd.read_csv(here / "t.csv")) == 160


def test_model_and_report_are_two_files(refused, here):
    (here / "link").symlink_to("z.mercer")
    for name in ("z.mercer", "./z.mercer", "link"):
        said = refused("fit", "t.csv", "-y", "spent", *QUICK, "--out", "z.mercer", "--report", name)
        assert "the same file as --out z.mercer" in said
    assert not (here / "z.mercer").exists()


def test_files_of_others_are_replaced_only_with_force(mercer, refused, here):
    (here / "notes.txt").write_text("mine")
    (here / "page.html").write_text("<html>mine")
    (here / "p.csv").write_text("id,prediction\n1,2\n")
    (here / "empty.csv").touch()
    for option in (("--out", "notes.txt"), ("--report", "page.html"), ("--report", "m.mercer")):
        said = refused("fit", "t.csv", "-y", "spent", *QUICK, *option)
        assert f"{' '.join(option)} is there, and not known to be mercer's; name another file, or add --force." in said
    assert "--force" in refused("predict", "m.mercer", "t.csv", "--out", "p.csv")
    assert mercer("predict", "m.mercer", "t.csv", "--out", "empty.csv").returncode == 0  # there is nothing to lose
    assert (here / "notes.txt").read_text() == "mine"
    done = mercer("fit", "t.csv", "-y", "spent", *QUICK, "--out", "notes.txt", "--report", "page.html", "--force")
    assert done.returncode == 0, done.stderr
    assert library.load(here / "notes.txt")


def test_models_and_reports_are_replaced_by_the_next_ones(mercer, here):
    for _ in range(2):
        done = mercer("fit", "t.csv", "-y", "spent", *QUICK, "--report", "t.html")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("command", "name"), [("demo", "new.csv"), ("tour", "gram.png"), ("demo", "tumours.html")])
def test_demo_and_tour_keep_the_files_of_others(refused, tmp_path, command, name):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / name).write_text("mine")
    assert "add --force" in refused(command, "--quick", "--out", "here")
    assert [path.name for path in (tmp_path / "here").iterdir()] == [name]


@pytest.mark.parametrize(("name", "said"), [("no/m.mercer", "there is no folder"), ("/dev/null", "a device or a pipe")])
def test_what_cannot_be_written_is_said_before_the_work(refused, here, name, said):
    assert said in refused("fit", "t.csv", "-y", "spent", *QUICK, "--out", name)


def test_a_report_that_cannot_be_made_costs_no_model(data, tmp_path, monkeypatch, capsys):
    import mercer.report.page
    from mercer.cli import fit

    def broken(*given):
        raise ValueError("nothing can be drawn.")

    monkeypatch.setattr(mercer.report.page, "_sections", broken)
    report = tmp_path / "r.html"
    fit.fit(str(data / "people.csv"), target="spent", kernel=["RBF(2)"], out=tmp_path / "m.mercer", report=report)
    assert (
        "nothing can be drawn: the report tells only what the search and the fit have found" in capsys.readouterr().err
    )
    assert library.load(tmp_path / "m.mercer")
    assert "Search" in report.read_text(encoding="utf-8")


# -- messages ---------------------------------------------------------------------------------------------


def test_no_message_is_longer_than_six_hundred_characters(refused, here):
    long = "x" * 10_000
    names = [f"{long}{i}" for i in range(30)]
    (here / "wide.csv").write_text(",".join([*names, "y"]) + "\n" + ",".join(["1"] * 31) + "\n")
    for command in (
        ("fit", "wide.csv", "-y", "none"),
        ("fit", "wide.csv"),
        ("fit", "t.csv", "-y", long),
        ("fit", "t.csv", "-y", "spent", "--kernel", f"RBF({long})"),
        ("fit", "t.csv", "-y", "spent", "--time", long),
        ("predict", "m.mercer", "wide.csv"),
        ("predict", "m.mercer", "t.csv", "--keep", long),
        (long,),
    ):
        lines = 3 if "--kernel" in command else 1  # with the expression and a mark under the place
        said = refused(*command, lines=lines)
        assert len(said) <= 601, (command[0], len(said))
        assert "…" in said
    assert refused("fit", "wide.csv", "-y", "none").endswith("more.\n")
