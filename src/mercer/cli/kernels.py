"""Commands about kernels: which there are, and whether an expression is one on some data."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

import mercer.kernels
from mercer.cli import options, output
from mercer.cli.output import CHECK_FAILED, guarded, noted, require_columns, say_json
from mercer.cli.rows import placed
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
    parse_kernel,
)
from mercer.machine.words import count

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
    "k.ranked(X)": Linear().ranked([[0.0], [1.0]]),
    "k.transformed(A)": Linear().transformed([1.0]),
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


@guarded()
def kernels(as_json: options.AsJson = False) -> None:
    """List the kernels and the closure rules, each with its formula and why it is positive semidefinite."""
    found = facts()
    if as_json:
        say_json(found)
        return
    console = output.terminal()
    shown = output.table("kernel", "k(x, z)", "proof", "status")
    shown.columns[0].no_wrap = shown.columns[2].no_wrap = shown.columns[3].no_wrap = True
    for name, kernel in found["kernels"].items():
        text = kernel["formula"]  # its conditions on lines of their own where it is long
        text = text if len(text) <= 32 else text.replace(",  ", ",\n")
        shown.add_row(name, Text(text), kernel["rule"], output.status(kernel["proof"]))
    console.print(shown)
    console.print()
    rules = output.table("made from kernels", "is", "proof")
    rules.columns[0].no_wrap = rules.columns[2].no_wrap = True
    for written, rule in found["rules"].items():
        rules.add_row(written, Text(rule["formula"]), rule["rule"])
    console.print(rules)
    console.print(
        "\nA kernel made from others is proven if all of them are. Differences, negative multiples and "
        "fractional powers are refused: they need not be kernels."
    )


def facts() -> dict[str, Any]:
    """Return the kernels and the rules as plain data."""
    made = {kind: (MADE.get(kind) or kind)().proof() for kind in catalogue()}
    return {
        "kernels": {
            kind.__name__: {"formula": formula(kind), "proof": proof.status, "rule": proof.rule}
            for kind, proof in made.items()
        },
        "rules": {
            written: {"formula": formula(type(sample)), "rule": sample.proof().rule}
            for written, sample in RULES.items()
        },
    }


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
    >>> from mercer.cli.kernels import formula
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
    r"""Return the LaTeX of a formula as readable text."""
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


@guarded(
    "mercer check 'RBF(2) + 0.5 * Linear() ** 2' data.csv",
    "mercer check 'Sigmoid(1, -1)' data.csv --drop label --json",
    'mercer check \'RBF(10).on("age") * Delta().on("job")\' people.csv --raw',
)
def check(
    kernel: Annotated[
        str, typer.Argument(metavar="KERNEL", help="An expression, such as 'RBF(2) + Linear()'.", show_default=False)
    ],
    data: options.Data,
    drop: options.Drop = None,
    rows: Annotated[int, typer.Option("--rows", min=1, metavar="N", help="How many rows to look at.")] = 2000,
    raw: Annotated[
        bool, typer.Option("--raw", help="Compare the columns as they are, not standardised and one-hot.")
    ] = False,
    format: options.Format = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    as_json: options.AsJson = False,
) -> None:
    """Say whether a kernel is symmetric and positive semidefinite on the rows of a table, with proof or witness.

    Columns are treated as in `mercer fit`. The exit code is 1 when it is no kernel there.
    """
    from mercer.gram import verdict
    from mercer.tables import TableEncoder, read_table

    made = kernel_named(kernel)
    made = made() if isinstance(made, type) else made
    with noted():
        frame = read_table(data, rows=rows, format=format, encoding=encoding, sheet=sheet)
        require_columns(drop or [], data, frame.columns, " to drop")
        frame = frame.drop(columns=drop or [])
        shape = f"{count(len(frame), 'row')}, {count(frame.shape[1], 'column')}"
        points: Any = frame
        if not raw:
            encoder = TableEncoder().fit(frame)
            points, made = encoder.transform(frame), placed(made, encoder, data)
            shape += f", {points.shape[1]} after encoding"
        made = made.resolve(points)
        found = verdict(made, points)
    proof = made.proof()
    if as_json:
        told = {"kernel": repr(made), "proof": proof.status, "rule": proof.rule, "data": shape}
        say_json(told | found.to_dict())
    else:
        console = output.terminal()
        console.print(output.tree(proof))
        console.print(Text(f"\nOn {shape} of {data}:"))
        style = "green" if found.psd else "red"
        first, *rest = str(found).splitlines()
        console.print(f"[{style}]{first}[/]")
        console.print("\n".join(rest), markup=False)
    if not found.psd:
        raise typer.Exit(CHECK_FAILED)


def kernel_named(text: str) -> Any:
    """Return the kernel of an expression; the class of a bare name such as RBF, which is tried at several scales.

    Examples
    --------
    >>> from mercer.cli.kernels import kernel_named
    >>> kernel_named("RBF(2) + Linear()")
    RBF(scale=2) + Linear()
    >>> kernel_named("RBF").__name__
    'RBF'
    """
    named = {kind.__name__: kind for kind in catalogue() if "scale" in kind.__dataclass_fields__}  # type: ignore[attr-defined]
    return named.get(text.strip()) or parse_kernel(text)
