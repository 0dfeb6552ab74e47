"""The catalogue of kernels as tables, with the formulas of their docstrings as text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

import mercer.kernels
from mercer.cli.shared import output
from mercer.kernels import (
    FromDissimilarity,
    FromFeatures,
    FromFunction,
    Kernel,
    Linear,
    PowerSeries,
    Precomputed,
    SetKernel,
    Spectral,
    SpectralMixture,
)

# Kernels that cannot be made without parameters, made with some: the proof is that of the class.
MADE = {
    FromDissimilarity: lambda: FromDissimilarity(np.zeros((1, 1))),
    FromFeatures: lambda: FromFeatures(np.asarray),
    FromFunction: lambda: FromFunction(np.dot),
    Precomputed: lambda: Precomputed(np.eye(1)),
    Spectral: lambda: Spectral(lambda n, rng: rng.normal(size=(n, 1))),
    SpectralMixture: lambda: SpectralMixture(weights=[1.0], means=[[1.0]], scales=[[1.0]]),
}

RULES = {
    "a * k": 2.0 * Linear(),
    "k1 + k2": Linear() + Linear(),
    "k1 * k2": Linear() * Linear(),
    "k ** p": Linear() ** 2,
    "k.exp()": Linear().exp(),
    "k.geometric()": Linear().geometric(),
    "PowerSeries(k, c)": PowerSeries(Linear(), [1.0, 1.0]),
    "k.rescaled(f)": Linear().rescaled(len),
    "k.normalized()": Linear().normalized(),
    "k.compose(psi)": Linear().compose(np.asarray),
    "k.on(columns)": Linear().on([0]),
    "SetKernel(k)": SetKernel(Linear()),
}


def catalogue() -> Iterator[type[Kernel]]:
    """Yield the classes of kernels that are not made from other kernels, in alphabetical order."""
    for name in sorted(mercer.kernels.__all__, key=str.lower):
        thing = getattr(mercer.kernels, name)
        if not inspect.isclass(thing) or not issubclass(thing, Kernel) or inspect.isabstract(thing):
            continue
        if not any(parameter.type in ("Kernel", Kernel) for parameter in fields(thing)):  # type: ignore[arg-type]
            yield thing


def show(console: Console) -> None:
    """Print the kernels, then the rules that build more of them."""
    kernels = output.table("kernel", "k(x, z)", "proof", "status")
    kernels.columns[0].no_wrap = kernels.columns[2].no_wrap = kernels.columns[3].no_wrap = True
    for kind in catalogue():
        proof = (MADE.get(kind) or kind)().proof()
        kernels.add_row(kind.__name__, _lines(formula(kind)), proof.rule, output.status(proof.status))
    console.print(kernels)
    console.print()
    rules = output.table("made from kernels", "is", "proof")
    rules.columns[0].no_wrap = rules.columns[2].no_wrap = True
    for written, sample in RULES.items():
        rules.add_row(written, Text(formula(type(sample))), sample.proof().rule)
    console.print(rules)
    console.print(
        "\nA kernel made from others is proven if all of them are. Differences, negative multiples and "
        "fractional powers are refused: they need not be kernels."
    )


def facts() -> dict[str, Any]:
    """Return the same as plain data.

    Examples
    --------
    >>> from mercer.cli.shown.catalogue import facts
    >>> facts()["kernels"]["RBF"]["proof"], facts()["rules"]["k1 + k2"]["rule"]
    ('proven', 'sum')
    """
    kernels = {}
    for kind in catalogue():
        proof = (MADE.get(kind) or kind)().proof()
        kernels[kind.__name__] = {"formula": formula(kind), "proof": proof.status, "rule": proof.rule}
    rules = {
        written: {"formula": formula(type(sample)), "rule": sample.proof().rule} for written, sample in RULES.items()
    }
    return {"kernels": kernels, "rules": rules}


def _lines(text: str) -> Text:
    """Return a formula with its conditions on lines of their own where it is long."""
    return Text(text if len(text) <= 32 else text.replace(",  ", ",\n"))


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
    >>> from mercer.cli.shown.catalogue import formula
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
    >>> from mercer.cli.shown.catalogue import plain
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
