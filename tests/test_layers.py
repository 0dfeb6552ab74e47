"""The folders of the library form layers: at the top of a module, each imports only folders that come before it."""

import ast
from functools import cache
from pathlib import Path

import pytest

import mercer
from cases import each

SOURCE = Path(mercer.__file__).parent
# The floors, from the bottom up. Whatever is not named here stands above them.
ORDER = (
    "machine",
    "points",
    "features",
    "kernels",
    "gram",
    "losses",
    "certify",
    "solvers",
    "rkhs",
    "estimators",
    "tables",
    "selection",
    "io",
)
CORE = ("machine", "points", "solvers")  # who calls the core: its threads, the engine of pairs, and SMO
PUBLIC = ("_core", "__version__")
PACKAGES = sorted(p.parent.name for p in SOURCE.glob("*/__init__.py"))
MODULES = sorted(SOURCE.rglob("*.py"))
FLOORS = [p for p in MODULES if p.relative_to(SOURCE).parts[0] in ORDER]


@cache
def imported(path):
    """The mercer modules that a file imports whenever it is imported itself."""
    found = []
    stack = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} line {node.lineno}: relative import; write mercer.<folder>"
            found += (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "mercer" else [node.module]
            )
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            stack += ast.iter_child_nodes(node)
    return [name for name in found if name == "mercer" or name.startswith("mercer.")]


def folder(name):
    """The first part of a module's name after mercer; '' for mercer itself."""
    first = [*name.split("."), ""][1]
    return first if (SOURCE / first).is_dir() or (SOURCE / f"{first}.py").exists() or first == "_core" else ""


def allowed(own):
    """The folders that a module of `own` may import."""
    before = set(ORDER[: ORDER.index(own) + 1])
    return before | {"_core"} if own in CORE else before


def uses():
    """Which folders import which, above the floors."""
    above = {}
    for path in MODULES:
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if own not in (*ORDER, "__init__"):
            above.setdefault(own, set()).update(map(folder, imported(path)))
    return {own: others - {own, *ORDER} for own, others in above.items()}


def test_the_floors_are_there():
    assert set(ORDER) <= set(PACKAGES)


@each("path", FLOORS, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_imports_only_what_comes_before_it(path):
    own = path.relative_to(SOURCE).parts[0]
    above = {name for name in imported(path) if folder(name) not in allowed(own)}
    assert not above, f"{own} may import {sorted(allowed(own))} at module level, not {sorted(above)}"


def rooms():
    """Which rooms of a folder import which, folder by folder."""
    found = {}
    for path in MODULES:
        own = path.relative_to(SOURCE).parts
        if len(own) == 3:
            others = {tuple(name.split(".")[1:3]) for name in imported(path)}
            known = {o[1] for o in others if len(o) == 2 and o[0] == own[0] and (SOURCE / o[0] / o[1]).is_dir()}
            found.setdefault(own[0], {}).setdefault(own[1], set()).update(known - {own[1]})
    return found


@pytest.mark.parametrize("name", sorted({p.parts[-3] for p in SOURCE.glob("*/*/*.py")}))
def test_rooms_of_a_folder_do_not_import_one_another_in_circles(name):
    assert_no_circles(rooms()[name])


def test_no_module_imports_private_names_of_another():
    found = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "mercer":
                names = [a.name for a in node.names if a.name.startswith("_") and a.name not in PUBLIC]
                found += [f"{path.relative_to(SOURCE)}: {name}" for name in names]
    assert not found


def test_no_folder_is_crowded():
    sizes = {p.parent: len(list(p.parent.glob("*.py"))) for p in MODULES}
    assert {str(p.relative_to(SOURCE)): n for p, n in sizes.items() if n > 16} == {}


def assert_no_circles(above):
    while above:
        free = [own for own, others in above.items() if not others & set(above)]
        assert free, f"these import one another in circles: {above}"
        for own in free:
            del above[own]


def test_folders_above_the_floors_do_not_import_one_another_in_circles():
    assert_no_circles(uses())


def test_only_these_folders_know_the_core():
    knows = {p.relative_to(SOURCE).parts[0] for p in MODULES if "_core" in map(folder, imported(p))}
    assert knows <= {*CORE, "cli"}


@pytest.mark.parametrize("name", ["solvers", "rkhs", "estimators", "tables", "selection"])
def test_kernel_values_come_from_gram_alone(name):
    """`Gram` is the seam at which another machine could compute them: above it nobody makes comparisons."""
    found = []
    for path in (SOURCE / name).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            known = isinstance(node, ast.ImportFrom) and any(alias.name == "Comparison" for alias in node.names)
            if known or (isinstance(node, ast.Attribute) and node.attr in ("comparison", "Comparison")):
                found.append(f"{path.relative_to(SOURCE)} line {node.lineno}")
    assert not found


def test_the_test_can_fail(tmp_path):
    (tmp_path / "bad.py").write_text(
        "from mercer import Gram\nfrom mercer.gram import Gram\ndef f():\n    import mercer.cli\n"
    )
    assert imported(tmp_path / "bad.py") == ["mercer.gram", "mercer.Gram"]
    assert folder("mercer.gram") == "gram" not in allowed("kernels")
    assert folder("mercer.Gram") == "" not in allowed("kernels")
    assert folder("mercer._core") == "_core" in allowed("points")
