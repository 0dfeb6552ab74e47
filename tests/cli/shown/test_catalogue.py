import re

import pytest

from cases import each
from mercer.cli.shown.catalogue import catalogue, formula, plain


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
