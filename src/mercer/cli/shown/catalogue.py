"""The catalogue of kernels as tables."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

import mercer.kernels
from mercer.cli.shared import terminal
from mercer.cli.shown.formula import formula
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
    kernels = terminal.table("kernel", "k(x, z)", "proof", "status")
    kernels.columns[0].no_wrap = kernels.columns[2].no_wrap = kernels.columns[3].no_wrap = True
    for kind in catalogue():
        proof = (MADE.get(kind) or kind)().proof()
        kernels.add_row(kind.__name__, _lines(formula(kind)), proof.rule, terminal.status(proof.status))
    console.print(kernels)
    console.print()
    rules = terminal.table("made from kernels", "is", "proof")
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
