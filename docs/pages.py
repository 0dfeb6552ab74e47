"""What the pages have from the library itself: every public name, the catalogue of kernels, pictures, docstrings."""

import doctest
import importlib
import inspect
import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from weakref import WeakSet

from matplotlib import rc_context
from matplotlib.figure import Figure

import mercer
from mercer.cli.kernels import catalogue, facts
from mercer.kernels import Kernel

#: The rooms that users enter, in the order of the theory.
ROOMS = (
    "kernels", "gram", "features", "losses", "solvers", "certify", "rkhs", "estimators", "selection", "tables", "plots",
    "report", "io", "testing", "points",
)  # fmt: skip
GENERAL = "In general"  # the heading of what a room defines in no folder of its own
BASES = "Kernel, BaseEstimator, Exception, tuple, Sequence, LinearOperator"  # whose own pages tell their members


def rooms() -> dict[str, list[str]]:
    """Return the public names of each room, and under "mercer" those that are of no room."""
    found = {room: list(importlib.import_module(f"mercer.{room}").__all__) for room in ROOMS}
    known = {name for names in found.values() for name in names}
    return {**found, "mercer": [name for name in mercer.__all__ if name not in known]}


def full_name(room: str, name: str) -> str:
    """Return how users import a name: from mercer where it is there."""
    return f"mercer.{name}" if name in mercer.__all__ else f"mercer.{room}.{name}"


def thing(path: str):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def write(docs: Path) -> None:
    """Write all pages into `generated`, and only those that have changed, so that a second build is quick."""
    folder = docs / "generated"
    pages = {"catalogue.rst": catalogue_page(), "reference.rst": index_page()}
    for room, names in rooms().items():
        pages[f"api/{room}.rst"] = room_page(room, names)
        pages |= {f"api/{_file(full_name(room, name))}.rst": name_page(room, name) for name in names}
    for path, text in pages.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    for file in set((folder / "api").rglob("*.rst")) - {folder / path for path in pages}:
        file.unlink()
    draw_front(docs / "index.md", folder / "front.svg")


def index_page() -> str:
    rows = "\n".join(f"   * - :doc:`api/{room}`\n     - {_words(room).split(chr(10) * 2)[0]}" for room in rooms())
    tree = "\n".join(f"   api/{room}" for room in rooms())
    text = f"{_title('Reference')}Every public name, room by room. Most are imported from ``mercer`` itself.\n\n"
    return f"{text}.. list-table::\n   :widths: 20 80\n\n{rows}\n\n.. toctree::\n   :hidden:\n\n{tree}\n"


def _words(room: str) -> str:
    if room == "mercer":
        return "What belongs to no room."
    return inspect.getdoc(importlib.import_module(f"mercer.{room}")) or ""


def room_page(room: str, names: list[str]) -> str:
    groups: dict[str, list[str]] = {}
    for name in sorted(names, key=str.lower):
        groups.setdefault(_group(room, name), []).append(full_name(room, name))
    text = f"{_title(room if room == 'mercer' else f'mercer.{room}')}{_words(room)}\n\n"
    for group in sorted(groups, key=lambda group: (group != GENERAL, group)):
        text += _title(group, "-") if len(groups) > 1 else ""
        listed = "\n".join(f"   ~{path}" for path in groups[group])
        text += f".. autosummary::\n   :nosignatures:\n\n{listed}\n\n"
    tree = "\n".join(f"   {name} <{_file(full_name(room, name))}>" for name in sorted(names, key=str.lower))
    return f"{text}.. toctree::\n   :hidden:\n\n{tree}\n"


def _file(path: str) -> str:
    """Return the file of a name's page; some file systems take Kernel and kernel for one."""
    return path if isinstance(thing(path), type) else f"functions/{path}"


def _group(room: str, name: str) -> str:
    """Return the folder inside the room that defines a name, as a heading."""
    parts = getattr(thing(full_name(room, name)), "__module__", "").split(".")
    return parts[2].capitalize() if len(parts) > 3 and parts[1] == room else GENERAL


def name_page(room: str, name: str) -> str:
    path = full_name(room, name)
    what = thing(path)
    module, _, _ = path.rpartition(".")
    if isinstance(what, type):
        said = f".. autoclass:: {path}\n   :members:\n   :special-members: __call__\n   :inherited-members: {BASES}\n"
    elif inspect.isroutine(what):
        said = f".. autofunction:: {path}\n"
    else:
        listed = ", ".join(map(_named, what)) if isinstance(what, dict | tuple) else f"``{what}``"
        said = f".. py:data:: {path}\n\n   {listed}\n"
    return (
        f"{_title(name)}.. currentmodule:: {module}\n\n{said}\n"
        f".. minigallery:: {path}\n   :add-heading: Examples\n   :heading-level: -\n"
    )


def _named(item: object) -> str:
    return f"``{getattr(item, '__name__', item)}``"


def _title(text: str, sign: str = "=") -> str:
    return f"{text}\n{sign * len(text)}\n\n"


# -- the catalogue of kernels ----------------------------------------------------------------------------------------

KINDS = {
    "vectors": "Kernels on vectors",
    "strings": "Kernels on strings, texts and series",
    "graphs": "Kernels on graphs",
    "objects": "Kernels on objects, sets and given similarities",
}


def catalogue_page() -> str:
    """Return the kernels that the library has, with the words and formulas of their docstrings."""
    known = facts()
    text = f"{_title('The catalogue of kernels')}``mercer kernels`` prints the same. "
    text += "Where nothing else is said, a kernel is proven to be positive semidefinite.\n\n"
    for place, heading in KINDS.items():
        kinds = [kind for kind in catalogue() if kind.__module__.split(".")[2] == place]
        names = [f":py:obj:`~{full_name('kernels', kind.__name__)}`" for kind in kinds]
        reasons = [_reason(known["kernels"][kind.__name__]) for kind in kinds]
        rows = list(zip(names, map(_meaning, kinds), reasons, strict=True))
        text += _title(heading, "-") + _table(("kernel", "what it says", "because of"), rows, "18 62 20")
    rows = [(f"``{made}``", _literal(row["formula"]), row["rule"]) for made, row in known["rules"].items()]
    return text + _title("Kernels made from kernels", "-") + _table(("written", "is", "because of"), rows, "25 55 20")


def _meaning(kind: type[Kernel]) -> str:
    words = inspect.getdoc(kind) or ""
    formula = re.search(r"^\.\. math::(.*(?:\n[ \t]+\S.*)*)", words, re.MULTILINE)
    shown = f"\n\n.. math:: {' '.join(formula[1].split())}" if formula else ""
    return _literal(words.split("\n\n")[0].replace("\n", " ")) + shown


def _reason(row: dict[str, str]) -> str:
    return row["rule"] if row["proof"] == "proven" else f"**{row['proof']}**: {row['rule']}"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]], widths: str) -> str:
    text = f".. list-table::\n   :class: catalogue\n   :header-rows: 1\n   :widths: {widths}\n\n"
    for row in [heads, *rows]:
        for i, cell in enumerate(row):
            text += f"   {'* -' if i == 0 else '  -'} " + cell.replace("\n", "\n       ") + "\n"
    return text + "\n"


# -- pictures --------------------------------------------------------------------------------------------------------


def draw_front(page: Path, file: Path) -> None:
    """Draw the picture of the front page: the figure that the example beside it makes."""
    shared: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(page.read_text(encoding="utf-8")):
        with redirect_stdout(io.StringIO()):
            exec(example.source, shared)
    with rc_context({"svg.hashsalt": "mercer"}):  # the same file from the same code
        shared["figure"].savefig(file, bbox_inches="tight", metadata={"Date": None})


_shown: WeakSet[Figure] = WeakSet()


def figures(block, block_vars, gallery_conf) -> str:
    """Show what `mercer.plots` returns: figures that pyplot does not know, by themselves or in a display."""
    from sphinx_gallery.scrapers import figure_rst

    paths = []
    for value in list(block_vars["example_globals"].values()):
        figure = getattr(value, "figure_", value)
        if isinstance(figure, Figure) and not hasattr(figure, "number") and figure not in _shown:
            paths.append(next(block_vars["image_path_iterator"]))
            figure.savefig(paths[-1], dpi=120)
            _shown.add(figure)
    return figure_rst(paths, gallery_conf["src_dir"])


# -- docstrings ------------------------------------------------------------------------------------------------------


def _literal(line: str) -> str:
    """Escape what a line means literally and reStructuredText does not: the bars of |x - z|, the end of alpha_."""
    parts = re.split(r"(``.*?``|`[^`]*`)", line)
    return "".join(p if p.startswith("`") else re.sub(r"\||(?<=\w)_(?!\w)", r"\\\g<0>", p) for p in parts)


def as_markup(app, what, name, obj, options, lines) -> None:
    """Make markup of a docstring, line by line, except in examples, formulas and other literal blocks."""
    outer = None  # the indentation of what a literal block belongs to
    example = False
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if outer is not None and line.strip() and indent <= outer:
            outer = None
        if outer is None and line.lstrip().startswith(".. math::"):
            outer = indent
        if outer is None and not example:
            lines[i] = _literal(line)
        if outer is None and line.rstrip().endswith("::"):
            outer = indent


def is_of_others(app, what, name, obj, skip, options) -> bool | None:
    """Leave out members that other libraries define, such as scikit-learn's routing of metadata."""
    home = getattr(inspect.unwrap(obj) if callable(obj) else getattr(obj, "fget", obj), "__module__", None)
    return True if isinstance(home, str) and home.split(".")[0] != "mercer" else None
