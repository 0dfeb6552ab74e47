"""Formulas of docstrings as a line of text."""

from __future__ import annotations

import inspect
import re

_SIGNS = {  # other commands are written as their name: exp, min
    "alpha": "α", "gamma": "γ", "mu": "μ", "nu": "ν", "pi": "π", "theta": "θ", "Gamma": "Γ", "Phi": "Φ", "psi": "ψ",
    "sum": "Σ", "le": "≤", "ge": "≥", "angle": "∠", "rho": "ρ", "lfloor": "⌊", "rfloor": "⌋", "quad": "  ",
    "qquad": "  ", "lambda": "λ", "ldots": "...", "in": "∈",
}  # fmt: skip
_POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_GROUP = r"\{((?:[^{}]|\{[^{}]*\})*)\}"  # a group in braces, which may hold groups of its own
_FRACTION = r"\\t?frac\s*" + _GROUP + r"\s*" + _GROUP
_FUNCTION = r"(\\(?:sin|cos|exp|tanh|log)(?:\^\d)?\s*)"
_ATOM = r"\\?\w+(?:[_^](?:\w|\{[^{}]*\}))*(?:\([^()]*\))?"  # a number, a letter with its indices, f(x)


def formula(thing: object) -> str:
    """Return the formula of a docstring as text: what follows `.. math::`, or else the first clause.

    Examples
    --------
    >>> from mercer import RBF, Cosine
    >>> from mercer.cli.shown.formula import formula
    >>> formula(RBF)
    'exp(-Σ_j (x_j - z_j)² / (2 s_j²))'
    >>> formula(Cosine)
    '<x, z> / (|x| |z|)'
    """
    words = inspect.getdoc(thing) or ""
    found = re.search(r"^\.\. math::(.*(?:\n[ \t]+\S.*)*)", words, re.MULTILINE)
    if found is None:
        return _clause(words.split("\n\n")[0].replace("\n", " ")).rstrip(".")
    return plain(re.sub(r"^\s*k\([^)]*\)\s*=", "", found[1]))


def plain(latex: str) -> str:
    r"""Return the LaTeX of a formula as readable text.

    Examples
    --------
    >>> from mercer.cli.shown.formula import plain
    >>> plain(r"\frac{2^{1-\nu}}{\Gamma(\nu)} r^\nu, \quad r = \sqrt{2\nu}\,|x - z| / s")
    '2^(1-ν)/Γ(ν) r^ν,  r = √(2ν) |x - z| / s'
    """
    text = re.sub(r"\\t?frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}", latex)
    text = re.sub(r"\\(?:mathbb|mathrm|text|operatorname)\s*" + _GROUP, r"\1", text)
    text = re.sub(r"\\[Bb]ig+[lr]?\s*|\\(?:left|right)(?![a-z])", "", text)
    text = re.sub(r"\\[,;: ]", " ", text)
    text = re.sub(r"\\langle\s*", "<", re.sub(r"\s*\\rangle", ">", text))
    text = re.sub(_FUNCTION + r"(?=\\t?frac)" + _FRACTION, lambda m: f"{m[1]}({_quotient(m[2], m[3])})", text)
    text = re.sub(_FRACTION, lambda m: _quotient(m[1], m[2]), text)
    text = re.sub(r"\\sqrt\s*" + _GROUP, r"√(\1)", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda m: _SIGNS.get(m[1], m[1]), text)
    text = re.sub(r"\^(\d)(?!\d)", lambda m: m[1].translate(_POWERS), text)
    text = re.sub(r"\^" + _GROUP, lambda m: f"^{m[1]}" if m[1].isalnum() else f"^({m[1]})", text)
    text = re.sub(_GROUP, r"\1", text)
    return re.sub(r"\s{2,}", lambda m: "  " if m.string[m.start() - 1] == "," else " ", text).strip()


def _quotient(above: str, below: str) -> str:
    if re.fullmatch(_ATOM, above) and re.fullmatch(_ATOM, below):
        return f"{above}/{below}"
    # Brackets and bars of the numerator hold its own signs; a sign outside them makes it a sum.
    above = f"({above})" if re.search(r"\S\s[+-]\s", re.sub(r"\([^()]*\)|\|[^|]*\|", "u", above)) else above
    return f"{above} / {below if re.fullmatch(_ATOM, below) else f'({below})'}"


def _clause(sentence: str) -> str:
    """Return what comes before the first comma that is not inside brackets."""
    depth = 0
    for i, sign in enumerate(sentence):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            return sentence[:i]
    return sentence
