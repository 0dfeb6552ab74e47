"""Commands as processes, a table with a bit of everything, and models fitted to it once."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

SETTINGS = {"COLUMNS", "FORCE_COLOR", "NO_COLOR", "TERM", "PYTHONIOENCODING", "MERCER_TRACEBACK"}
PLAIN = {name: value for name, value in os.environ.items() if name not in SETTINGS}


class Server:
    """Runs commands, each in a process of its own whose output is no terminal."""

    def __init__(self, folder):
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=PLAIN,
            text=True,
        )

    def run(self, *arguments, cwd, stdin=b"", stdout=None, limit=None, nobody=False, **environment):
        """Run a command that may write no file longer than `limit` bytes, or as a user without rights."""
        places = {name: self.folder / name for name in ("stdin", "stdout", "stderr")}
        for name, place in places.items():
            place.write_bytes(stdin if name == "stdin" else b"")
        job = {"arguments": list(map(str, arguments)), "cwd": str(cwd), "env": {**PLAIN, **environment}}
        job |= {name: str(place) for name, place in places.items()} | {"limit": limit, "nobody": nobody}
        if stdout or limit:  # which would hold for a file of what is printed, too
            job["stdout"] = stdout or "/dev/null"
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        out, err = (places[name].read_text(encoding="utf-8") for name in ("stdout", "stderr"))
        return SimpleNamespace(returncode=code, stdout=out, stderr=err)


@pytest.fixture
def mercer(server, tmp_path):
    """Run a command in an empty folder."""

    def run(*arguments, cwd=tmp_path, stdin=b"", **environment):
        return server.run(*arguments, cwd=cwd, stdin=stdin, **environment)

    return run


@pytest.fixture
def refused(mercer):
    """Run a command that must fail with one sentence on standard error; return that."""

    def run(*arguments, code=2, lines=1, **options):
        done = mercer(*arguments, **options)
        assert done.returncode == code, done.stderr
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == lines, done.stderr
        assert done.stderr.startswith("mercer")
        return done.stderr

    return run


def people(n=160, seed=0):
    """Numbers with gaps and long tails, categories, dates, a name, a constant; a class and a number to predict."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 80, n).astype(float)
    job = random.choice(["smith", "baker", "clerk"], n, p=[0.5, 0.3, 0.2])
    wealth = np.exp(random.normal(10, 1.5, n))
    joined = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, n), unit="D")
    spent = 2.0 * age + 30 * (job == "smith") + random.normal(0, 5, n)
    table = pd.DataFrame(
        {
            "name": [f"person {i:05d}" for i in range(n)],
            "age": np.where(random.random(n) < 0.1, np.nan, age),
            "job": job,
            "wealth": wealth.round(2),
            "joined": joined.strftime("%Y-%m-%d"),
            "planet": "Earth",
            "spent": spent.round(3),
            "buys": np.where(spent + random.normal(0, 10, n) > 100, "yes", "no"),
        }
    )
    return table


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder with the same table in every format, and rows that no model has seen."""
    folder = tmp_path_factory.mktemp("data")
    table = people()
    table.to_csv(folder / "people.csv", index=False)
    table.to_csv(folder / "people.tsv", index=False, sep="\t")
    with gzip.open(folder / "people.csv.gz", "wt") as file:
        table.to_csv(file, index=False)
    table.to_parquet(folder / "people.parquet")
    table.to_feather(folder / "people.feather")
    lines = [json.dumps({k: v for k, v in row.items() if v == v}) for row in table.to_dict("records")]
    (folder / "people.jsonl").write_text("\n".join(lines))
    with pd.ExcelWriter(folder / "people.xlsx") as book:
        pd.DataFrame({"note": ["of 2020"]}).to_excel(book, sheet_name="Notes", index=False)
        table.to_excel(book, sheet_name="People", index=False)
    people(60, seed=1).to_csv(folder / "new.csv", index=False)
    numbers = np.random.default_rng(2).normal(size=(80, 4)).round(3)
    dump_svmlight_file(numbers, (numbers[:, 0] > 0) * 2 - 1, str(folder / "signs.svm"), zero_based=False)
    return folder


def fitted(server, folder, target, *more, out=None):
    path = folder / (out or f"{target}.mercer")
    arguments = ("fit", folder / "people.csv", "--target", target, "--out", path, *more)
    done = server.run(*arguments, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return path, json.loads(done.stdout)


@pytest.fixture(scope="session")
def buys(server, data):
    """A classifier, and what the fit said."""
    return fitted(server, data, "buys", "--drop", "spent")


@pytest.fixture(scope="session")
def spent(server, data):
    """A regressor."""
    return fitted(server, data, "spent", "--drop", "buys")
