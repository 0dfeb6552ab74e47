import json
import re

import numpy as np
import pandas as pd
import pytest

from cases import each
from mercer import Sigmoid
from mercer.cli.kernels import catalogue, formula, plain
from mercer.tables import TableEncoder


@each("kind", list(catalogue()), ids=lambda kind: kind.__name__)
def test_no_latex_is_left(kind):
    text = formula(kind)
    assert text
    assert not re.search(r"[\\{}$\n]|\^\^|__|  $|frac|Bigl", text)
    assert text.count("(") == text.count(")")
    assert not text.startswith("k(")


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\frac{1}{2}", "1/2"),
        (r"\tfrac12 x", "1/2 x"),
        (r"\frac{a + b}{c}", "(a + b) / c"),
        (r"\frac{|a + b|^2}{2 c}", "|a + b|² / (2 c)"),
        (r"\cos \frac{\pi x}{p}", "cos (π x / p)"),
        (r"x^{10} y^3 z^{-\alpha}", "x^10 y³ z^(-α)"),
        (r"\langle x, z \rangle^p, \quad p \ge 1", "<x, z>^p,  p ≥ 1"),
        (r"\left( s_{qj} \right)", "( s_qj )"),
        (r"\sum_{m \ge 0} \lambda^m, \qquad v \in G, \ldots", "Σ_m ≥ 0 λ^m,  v ∈ G, ..."),
        (r"\unknown(x)", "unknown(x)"),
    ],
)
def test_signs(latex, text):
    assert plain(latex) == text


def test_without_a_formula_the_first_clause_is_given():
    def f():
        """g(x, z) + 1, which is more than g.

        And so on.
        """

    assert formula(f) == "g(x, z) + 1"


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
