"""The catalogue of kernels as the page knows it: programs, domains, proofs and refusals, written as TypeScript.

Each kernel is traced with symbols in place of its parameters, so that what the page runs is what the library runs: the
straight-line program of `compile_formula`, with constants that are expressions in the parameters. The rules of the
algebra are traced in the same way, around kernels that stand for others.

    python lab/export.py OUT.ts
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from latex2mathml.converter import convert

from mercer.kernels import Kernel, Linear, kernel
from mercer.kernels.rules.algebra import Power, Product, Scaled, Sum
from mercer.kernels.rules.power_series import Exponential, Geometric
from mercer.kernels.rules.pullback import Normalized, On, Transformed
from mercer.kernels.state import kernel_classes
from mercer.kernels.vectors.stationary import Radial
from mercer.points import Points
from mercer.points.formulas.dual import Dual, Tape, is_number
from mercer.points.formulas.formula import Formula, StatLeaf, Traced
from mercer.points.formulas.program import compile_formula

NAMES = (
    "Constant", "Linear", "Polynomial", "RBF", "Laplacian", "Matern", "RationalQuadratic", "Cauchy", "PowerExponential",
    "Wendland", "Periodic", "Cosine", "ArcCosine", "ChiSquared", "Intersection", "Sigmoid",
)  # fmt: skip
RULES = (Sum, Product, Scaled, Power, Exponential, Geometric, Normalized, On, Transformed)
CHOICES = {"nu": (0.5, 1.5, 2.5), "order": (0, 1, 2), "smoothness": (0, 1, 2)}  # these choose the formula
WHOLE = {"degree": (5, 7), "power": (5, 7)}  # a whole number is found in a program by tracing it twice
SAMPLE = 1.375  # the value of a symbol; no constant of a formula
WIDTHS = (1, 2)  # features of the page's points
FOREIGN = {"_InverseRoot": "inverse root", "_Inside": "inside", "norms": "norm", "squared_norms": "square"}


class Symbol(Dual):
    """A parameter, or an expression in parameters, as text that JavaScript reads."""

    __slots__ = ("text",)

    def __init__(self, value: float, text: str) -> None:
        super().__init__(value, {}, Tape())
        self.text = text

    def __neg__(self) -> Symbol:
        return Symbol(-self.value, f"(-{self.text})")

    def __format__(self, spec: str) -> str:
        return f"{{{self.text}}}"


def _operator(sign: str, name: str) -> None:
    def forward(self: Symbol, other: Any) -> Any:
        value = getattr(Dual, f"__{name}__")(self, other)
        return value if value is NotImplemented else Symbol(value.value, f"({self.text} {sign} {written(other)})")

    def backward(self: Symbol, other: Any) -> Any:
        value = getattr(Dual, f"__r{name}__")(self, other)
        return value if value is NotImplemented else Symbol(value.value, f"({written(other)} {sign} {self.text})")

    setattr(Symbol, f"__{name}__", forward)
    setattr(Symbol, f"__r{name}__", backward)


for _sign, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "truediv"), ("**", "pow")):
    _operator(_sign, _name)


def written(value: Any) -> str:
    """Return a number or an expression as JavaScript."""
    return value.text if isinstance(value, Symbol) else json.dumps(float(value))


@kernel
class Part(Kernel):
    """The kernel in the place of another one, whose values are a leaf."""

    name: str = "base"

    def of(self, pair: Any) -> Any:
        return Formula("stat", leaf=StatLeaf(self.name, pair._path))


# -- programs ---------------------------------------------------------------------------------------------


def program(k: Kernel, width: int) -> str:
    """Return the program of a kernel as a JavaScript object."""
    formula = k.of(Traced(Points(np.zeros((1, width)))))
    if is_number(formula):  # a constant, which has no formula of pairs: 0 <x, z> + c
        formula = Formula("addc", (Formula("mulc", (Formula("stat", leaf=StatLeaf("dot", ())),), 0.0),), formula)
    made = compile_formula(formula)
    ops = ", ".join(map(json.dumps, made.code))
    constants = ", ".join(f"[{', '.join(map(written, row))}]" for row in made.constants)
    leaves = ", ".join(
        f"{{ kind: {json.dumps(s.kind)}, path: {path(s.path)}, scale: {_each(s.scale)} }}" for s in made.stats
    )
    values = [f"{{ of: {json.dumps(function(leaf.function))}, path: {path(leaf.path)} }}" for leaf in made.rows]
    assert [leaf.function for leaf in made.rows] == [leaf.function for leaf in made.cols]
    return (
        f"{{ code: [{ops}], constants: [{constants}], result: {made.result}, stats: [{leaves}], "
        f"values: [{', '.join(values)}] }}"
    )


def _each(scale: Any) -> str:
    return "1" if is_number(scale) and not isinstance(scale, Symbol) and scale == 1 else written(scale)


def path(maps: tuple[Any, ...]) -> str:
    """Return the maps that the points go through, with their parameters."""
    out = []
    for map in maps:
        name = getattr(map, "__name__", type(map).__name__).strip("_")
        parameter = getattr(map, "period", None)
        out.append(f"{{ map: {json.dumps(name)}{f', by: {written(parameter)}' if parameter is not None else ''} }}")
    return f"[{', '.join(out)}]"


def function(of: Any) -> str:
    """Return the name of a function of points."""
    return FOREIGN[getattr(of, "__name__", type(of).__name__)]


# -- entries ----------------------------------------------------------------------------------------------


def symbols(cls: type[Kernel]) -> dict[str, Any]:
    """Return the arguments that trace a class: symbols, and stand-ins for kernels."""
    given: dict[str, Any] = {}
    for f in fields(cls):  # type: ignore[arg-type]
        if f.type in ("Kernel", Kernel):
            given[f.name] = Part(f.name)
        elif f.name == "columns":
            given[f.name] = [0]
        elif f.name == "matrix":
            given[f.name] = [1.0]
        else:
            given[f.name] = Symbol(SAMPLE, f"p.{f.name}")
    return given


def variants(cls: type[Kernel]) -> list[str]:
    """Return the programs of a class, for each choice among its formulas and each number of features."""
    given = symbols(cls)
    chosen = [name for name in given if name in CHOICES]
    whole = [name for name in given if name in WHOLE and "int" in str(annotation(cls, name))]
    widths = WIDTHS[:1] if cls in RULES else WIDTHS
    out: list[str] = []
    for values in product(*(CHOICES[name] for name in chosen)):
        when = dict(zip(chosen, values, strict=True))
        texts = []
        for width in widths:
            traced = [
                (program(k, width), reason(k))
                for sample in range(2)
                for k in [cls(**{**given, **when, **{name: WHOLE[name][sample] for name in whole}})]
            ]
            texts.append([_merged(a, b, whole) for a, b in zip(*traced, strict=True)])
        for width, (made, why) in zip(widths, texts, strict=True):
            same = texts[0] == texts[-1]
            if same and width != widths[0]:
                continue
            condition = json.dumps(when if same else {**when, "width": width})
            out.append(f"{{ when: {condition}, because: {_arrow(why)}, program: {_arrow(f'({made})')} }}")
    return out


def _arrow(body: str) -> str:
    return f"({'p' if 'p.' in body else ''}) => {body}"


def reason(k: Kernel) -> str:
    """Return rule, reason and status of a kernel's own step of the proof as a JavaScript array."""
    p = k.proof()
    return f"[{json.dumps(p.rule)}, {_template(p.reason)}, {json.dumps(p.own)}]"


def _template(text: str) -> str:
    return "`" + re.sub(r"\{(p\..*?|\(.*?\))\}", r"${\1}", text) + "`" if "{" in text else json.dumps(text)


def _merged(a: str, b: str, whole: list[str]) -> str:
    """Return the one text of two, which hold the two values of a whole parameter, with the parameter in their place."""
    if a == b:
        return a
    (name,) = whole
    first, second = WHOLE[name]
    left, right = (re.split(rf"\b{n}(?:\.0)?\b", text) for n, text in ((first, a), (second, b)))
    assert left == right, (a, b)
    return f"p.{name}".join(left) if "code:" in a else ("${p." + name + "}").join(left).replace('"', "`")


def annotation(cls: type[Kernel], name: str) -> Any:
    """Return what a parameter is annotated with."""
    return next(f.type for f in fields(cls) if f.name == name)  # type: ignore[arg-type]


def parameters(cls: type[Kernel]) -> list[dict[str, Any]]:
    """Return each parameter with its domain, and the sentence that refuses what is outside of it."""
    out = []
    for f in fields(cls):  # type: ignore[arg-type]
        if f.type in ("Kernel", Kernel) or f.name in ("columns", "matrix"):
            continue
        entry: dict[str, Any] = {"name": f.name, "default": None if f.default is MISSING else f.default}
        entry["whole"] = "int" in str(f.type)
        entry["each"] = "Sequence" in str(f.type) or f.type == "Scale"
        entry["choices"] = list(CHOICES.get(f.name, ()))
        for value in (-1.0, 0.0, 2.5):
            said = refused(partial(cls, **{**plain(cls), f.name: value}))
            if not said or (value == 2.5 and (entry["whole"] or entry["choices"])):
                continue
            bound, name = {-1.0: (0.0, "low"), 0.0: (0.0, "open"), 2.5: (2.0, "high")}[value]
            entry[name] = bound
            entry.setdefault("beyond" if name == "high" else "refused", said.replace(repr(value), "{value}"))
        out.append(entry)
    return out


def plain(cls: type[Kernel]) -> dict[str, Any]:
    """Return arguments in the domain of a class."""
    own = {"base": Linear(), "left": Linear(), "right": Linear(), "columns": [0], "matrix": [1.0], "factor": 1.0}
    return {f.name: own[f.name] for f in fields(cls) if f.default is MISSING and f.name in own} | (  # type: ignore[arg-type]
        {"power": 2} if cls is Power else {}
    )


def refused(make: Callable[[], Any]) -> str:
    """Return the sentence with which something is refused, or nothing."""
    try:
        make()
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def formula(cls: type[Kernel]) -> str:
    """Return the formula in the docstring as MathML, or the first line of the docstring."""
    text = inspect.cleandoc(cls.__doc__ or "")
    found = re.search(r"\.\. math:: (.*?)\n\n", text, re.DOTALL)
    if found is None:
        return text.splitlines()[0]
    latex = " ".join(found[1].split()).replace(r"\tfrac", r"\frac").replace(r"\;", r"\,")
    latex = latex.replace(r"\Bigl", r"\left").replace(r"\Bigr", r"\right")
    return re.sub(r' (xmlns|display)="[^"]*"', "", convert(latex)).replace("<math>", '<math displaystyle="true">')


def auto(cls: type[Kernel]) -> str:
    """Return the rule by which "auto" is read off data."""
    if cls.__name__ == "Laplacian":
        return "width times deviation"
    return "root of half the spread" if issubclass(cls, Radial) else "inverse spread"


def entry(cls: type[Kernel]) -> str:
    """Return what the catalogue says of a class, as one line of TypeScript."""
    return (
        f"  {cls.__name__}: {{ formula: {json.dumps(formula(cls), ensure_ascii=False)}, "
        f"summary: {json.dumps(inspect.cleandoc(cls.__doc__ or '').splitlines()[0])}, auto: {json.dumps(auto(cls))}, "
        f"parameters: {json.dumps(parameters(cls))}, variants: [{', '.join(variants(cls))}] }},"
    )


REFUSALS: dict[str, Callable[[], Any]] = {
    "difference": lambda: Linear() - Linear(),
    "negative": lambda: -Linear(),
    "quotient": lambda: Linear() / Linear(),
    "reciprocal": lambda: 2.0 / Linear(),
}


def catalogue() -> str:
    """Return the whole catalogue as a TypeScript module."""
    from mercer import _core

    known = kernel_classes()
    lines = [
        "// Made by lab/export.py from the kernels of the library; not to be edited.",
        'import type { Entry } from "./kernels/entry.ts";',
        "export const KERNELS: Record<string, Entry> = {",
        *(entry(known[name]) for name in NAMES),
        "};",
        "export const RULES: Record<string, Entry> = {",
        *(entry(cls) for cls in RULES),
        "};",
        f"export const OPS: readonly string[] = {json.dumps(list(_core.OPS))};",
        f"export const STATS: readonly string[] = {json.dumps(list(_core.STATS))};",
        f"export const REFUSALS = {json.dumps({name: refused(make) for name, make in REFUSALS.items()})};",
        f"export const FLOWERS: readonly (readonly number[])[] = {json.dumps(flowers())};",
    ]
    return "\n".join(lines) + "\n"


def flowers() -> list[list[float]]:
    """Return Fisher's iris: length and width of the petals, and the species."""
    from sklearn.datasets import load_iris

    data, species = load_iris(return_X_y=True)
    return [[*row[2:].tolist(), int(kind)] for row, kind in zip(data, species, strict=True)]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(catalogue(), encoding="utf-8")
