"""The pages that are made of the library itself: every public name, room by room, and the catalogue of kernels."""

import importlib
import inspect
import re
from pathlib import Path

import mercer
from mercer.cli.kernels import catalogue, facts
from mercer.kernels import Kernel

#: The rooms that users enter, in the order of the theory.
ROOMS = (
    "kernels", "gram", "features", "losses", "solvers", "certify", "rkhs", "estimators", "selection", "tables", "plots",
    "report", "io", "testing", "points",
)  # fmt: skip
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


def write(folder: Path) -> None:
    """Write all pages, and only those that have changed, so that a second build is quick."""
    pages = {"catalogue.md": catalogue_page(), "reference.rst": index_page()}
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


def index_page() -> str:
    rows = "\n".join(f"   * - :doc:`api/{room}`\n     - {_words(room).split(chr(10) * 2)[0]}" for room in rooms())
    tree = "\n".join(f"   api/{room}" for room in rooms())
    return (
        f"{_title('Reference')}Every public name, room by room. What is under ``mercer`` itself is named so.\n\n"
        f".. list-table::\n   :widths: 20 80\n\n{rows}\n\n.. toctree::\n   :hidden:\n\n{tree}\n"
    )


def _words(room: str) -> str:
    return inspect.getdoc(mercer if room == "mercer" else importlib.import_module(f"mercer.{room}")) or ""


def room_page(room: str, names: list[str]) -> str:
    groups: dict[str, list[str]] = {}
    for name in sorted(names, key=str.lower):
        groups.setdefault(_group(room, name), []).append(full_name(room, name))
    text = f"{_title(room if room == 'mercer' else f'mercer.{room}')}{_words(room)}\n\n"
    for group in sorted(groups):
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
    return parts[2].capitalize() if len(parts) > 3 and parts[1] == room else "In general"


def name_page(room: str, name: str) -> str:
    path = full_name(room, name)
    what = thing(path)
    module, _, _ = path.rpartition(".")
    if isinstance(what, type):
        said = f".. autoclass:: {path}\n   :members:\n   :inherited-members: {BASES}\n"
    elif inspect.isroutine(what):
        said = f".. autofunction:: {path}\n"
    else:
        said = f".. py:data:: {path}\n\n   A {type(what).__name__} of {', '.join(map(_named, what))}.\n"
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
    """Return the catalogue as the library has it: `mercer kernels` prints the same facts."""
    known = facts()
    text = "# The catalogue of kernels\n\nWhat `mercer kernels` prints, with links. A kernel is *proven* by its class, "
    text += "*refuted* where the formula has a negative eigenvalue on some points, and else *unproven*.\n\n"
    for place, heading in KINDS.items():
        kinds = [kind for kind in catalogue() if kind.__module__.split(".")[2] == place]
        text += f"## {heading}\n\n| kernel | k(x, z) | because of | status |\n|---|---|---|---|\n"
        for kind in kinds:
            row = known["kernels"][kind.__name__]
            text += f"| {{py:obj}}`~{_home(kind)}` | {_cell(row['formula'])} | {_cell(row['rule'])} | {row['proof']} |\n"
        text += "\n"
    text += "## Closure: kernels made from kernels\n\n| written | is | because of |\n|---|---|---|\n"
    for written, row in known["rules"].items():
        text += f"| `{written}` | {_cell(row['formula'])} | {_cell(row['rule'])} |\n"
    return text


def _home(kind: type[Kernel]) -> str:
    return full_name("kernels", kind.__name__)


def _cell(text: str) -> str:
    """Return plain text as a cell of a Markdown table."""
    return re.sub(r"([\\`*_{}\[\]<>#|^$])", r"\\\1", text)


# -- docstrings ------------------------------------------------------------------------------------------------------


def as_markup(app, what, name, obj, options, lines) -> None:
    """Escape what docstrings mean literally and reStructuredText does not: the bars of |x - z|, the end of alpha_."""
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
            parts = re.split(r"(``.*?``|`[^`]*`)", line)
            lines[i] = "".join(p if p.startswith("`") else re.sub(r"\||(?<=\w)_(?!\w)", r"\\\g<0>", p) for p in parts)
        if outer is None and line.rstrip().endswith("::"):
            outer = indent


def is_of_others(app, what, name, obj, skip, options) -> bool | None:
    """Leave out members that other libraries define, such as scikit-learn's routing of metadata."""
    home = getattr(inspect.unwrap(obj) if callable(obj) else getattr(obj, "fget", obj), "__module__", None)
    return True if isinstance(home, str) and home.split(".")[0] != "mercer" else None
