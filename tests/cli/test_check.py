import json

import numpy as np
import pandas as pd
import pytest

from mercer import Sigmoid
from mercer.tables import TableEncoder


def test_a_kernel(mercer, data):
    done = mercer("check", "RBF(2) + 0.5 * Linear() ** 2", data / "people.csv")
    assert done.returncode == 0, done.stderr
    assert "RBF(scale=2) + 0.5 * Linear() ** 2  proven" in done.stdout
    assert "Positive semidefinite on these 160 points" in done.stdout


def test_no_kernel_has_a_witness(mercer, data):
    done = mercer("check", "Sigmoid(1, -1)", data / "people.csv", "--drop", "buys", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["proof"] == "refuted"
    assert not found["psd"]
    table = pd.read_csv(data / "people.csv").drop(columns=["buys"])
    K = Sigmoid(1, -1)(TableEncoder().fit_transform(table))
    a = np.array(found["witness"])
    assert a @ K @ a == pytest.approx(found["quadratic_form"], rel=1e-6)
    assert found["quadratic_form"] < 0


def test_columns_as_they_are(mercer, data):
    done = mercer("check", 'RBF(10).on("wealth") * Delta().on("job")', data / "people.csv", "--raw", "--rows", "50")
    assert done.returncode == 0, done.stderr
    assert "these 50 points" in done.stdout


def test_columns_by_name(mercer, refused, data):
    done = mercer("check", 'RBF(10).on("wealth") * Linear().on("job")', data / "people.csv", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["psd"]
    assert "'wage'" in refused("check", 'RBF(10).on("wage")', data / "people.csv")


def test_errors_point_at_the_place(refused, data):
    sentence = refused("check", "RBF(2) - Linear()", data / "people.csv", lines=3)
    text, mark = sentence.splitlines()[1:]
    assert mark.index("^") >= text.index("RBF")
    assert "no such file" in refused("check", "RBF(2)", "none.csv")


def test_the_catalogue_as_json(mercer):
    found = json.loads(mercer("kernels", "--json").stdout)
    assert found["kernels"]["RBF"]["proof"] == "proven"
    assert found["kernels"]["Sigmoid"]["proof"] == "refuted"
    assert found["rules"]["k1 * k2"]["rule"] == "product"
