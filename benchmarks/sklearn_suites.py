"""scikit-learn's own tests, run with mercer's classes in place of its own.

The tests come with scikit-learn (with its source distribution, where an installation has left them out). Each suite
is copied to a temporary folder and adapted by what stands in `sklearn_suites.toml`: classes and texts that are
replaced, and tests that cannot agree, each with its reason. A test counts where it makes one of mercer's estimators.

    python benchmarks/sklearn_suites.py [suite ...]      # prints the counts by suite, and every failure with its reason
"""

from __future__ import annotations

import ast
import fnmatch
import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

import sklearn
from _harness import Report

SUITES = tomllib.loads((Path(__file__).parent / "sklearn_suites.toml").read_text())
BAR = 0.94  # the share of the tests with a counterpart that pass

# Notes which tests make an estimator of mercer's, and how they end.
CONFTEST = """
import functools, json, os
import pytest
import mercer, mercer.estimators
pytest_plugins = ["sklearn.conftest"]
made = [False]

def noting(init):
    @functools.wraps(init)
    def noted(self, *args, **kwargs):
        made[0] = True
        init(self, *args, **kwargs)
    return noted

for name in mercer.estimators.__all__:
    cls = getattr(mercer.estimators, name)
    if isinstance(cls, type) and "__init__" in vars(cls):
        cls.__init__ = noting(cls.__init__)

def pytest_runtest_setup(item):
    made[0] = False

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call" or report.outcome == "failed":
        with open(os.environ["OUTCOMES"], "a") as file:
            text = str(call.excinfo.value).strip().splitlines() if call.excinfo else []
            kind = type(call.excinfo.value).__name__ if call.excinfo else ""
            outcome = [item.nodeid, report.outcome, made[0], f"{kind}: {' '.join(text[:3])[:300]}"]
            file.write(json.dumps(outcome) + "\\n")
"""


class Substitute(ast.NodeTransformer):
    """Takes the classes that have a counterpart from mercer, and gives them scikit-learn's defaults."""

    def __init__(self, names: list[str], defaults: dict[str, dict[str, str]]) -> None:
        self.names, self.defaults = names, defaults

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.AST]:
        ours = [alias for alias in node.names if alias.name in self.names]
        if not ours or not (node.module or "").startswith("sklearn"):
            return node
        theirs = [alias for alias in node.names if alias.name not in self.names]
        made: list[ast.AST] = [ast.ImportFrom("mercer", ours, 0)]
        return made + ([ast.ImportFrom(node.module, theirs, 0)] if theirs else [])

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in ("svm", "linear_model") and node.attr in self.names:
            return ast.Attribute(ast.Call(ast.Name("__import__"), [ast.Constant("mercer")], []), node.attr, node.ctx)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = {keyword.arg for keyword in node.keywords}
        for number, (parameter, value) in enumerate(self.defaults.get(name, {}).items()):
            if parameter not in given and None not in given and number >= len(node.args):
                node.keywords.append(ast.keyword(parameter, ast.parse(value, mode="eval").body))
        return node


def source(path: str, folder: Path) -> str:
    """Return a test module of the installed scikit-learn, or of its source distribution."""
    installed = Path(sklearn.__file__).parent / path
    if installed.exists():
        return installed.read_text()
    version = importlib.metadata.version("scikit-learn")
    if not list(folder.glob("*.tar.gz")):
        fetch = ["download", "--no-deps", "--no-binary", ":all:", "-d", str(folder), f"scikit-learn=={version}"]
        subprocess.run([sys.executable, "-m", "pip", *fetch], check=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        file = archive.extractfile(f"scikit_learn-{version}/sklearn/{path}")
        assert file is not None
        return file.read().decode()


def adapted(path: str, suite: dict, folder: Path) -> str:
    """Return a test module with mercer's classes."""
    text = source(path, folder)
    for change in suite.get("replace", []):
        if change["from"] not in text:
            sys.exit(f"{path} of this scikit-learn does not contain {change['from']!r}")
        text = text.replace(change["from"], change["to"])
    tree = Substitute(suite["classes"], suite.get("defaults", {})).visit(ast.parse(text))
    return ast.unparse(ast.fix_missing_locations(tree))


def run(path: str, suite: dict, folder: Path) -> list[tuple[str, str, bool, str]]:
    """Return name, outcome, whether an estimator of mercer's was made, and the message of every test."""
    module = folder / Path(path).name
    module.write_text(adapted(path, suite, folder))
    outcomes = folder / f"{module.stem}.jsonl"
    (folder / "conftest.py").write_text(CONFTEST)
    options = ["-q", "--tb=no", "-p", "no:cacheprovider"]
    environment = {**os.environ, "OUTCOMES": str(outcomes), "SKLEARN_TESTS_GLOBAL_RANDOM_SEED": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", os.devnull, "--rootdir", str(folder), str(module)],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    if not outcomes.exists():
        sys.exit(f"{path} could not be run:\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
    lines = [json.loads(line) for line in outcomes.read_text().splitlines()]
    return [(name.split("::", 1)[1], outcome, made, message) for name, outcome, made, message in lines]


def reason(name: str, reasons: list[dict]) -> str | None:
    """Return why a test cannot agree."""
    return next((r["why"] for r in reasons if any(fnmatch.fnmatchcase(name, p) for p in r["tests"])), None)


def main(chosen: list[str]) -> int:
    """Run the suites, and say which of their tests pass."""
    report = Report("sklearn_suites")
    passed = counted = unexplained = 0
    for path, suite in SUITES.items():
        if chosen and not any(word in path for word in chosen):
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcomes = run(path, suite, Path(folder))
        made = [(n, o, m) for n, o, used, m in outcomes if used and reason(n, suite.get("absent", [])) is None]
        good = [n for n, o, _ in made if o != "failed"]
        failed = [(n, m) for n, o, m in made if o == "failed"]
        why = {n: reason(n, suite.get("different", [])) for n, _ in failed}
        passed, counted = passed + len(good), counted + len(made)
        unexplained += sum(text is None for text in why.values())
        share, others = f"{len(good) / max(len(made), 1):.1%}", len(outcomes) - len(made)
        report.add(path, f"{len(good)} of {len(made)} pass", f"{others} without a counterpart", share)
        for name, message in failed:
            report.notes.append(f"{Path(path).name}::{name}: {why[name] or 'NO REASON GIVEN: ' + message}")
    share = passed / max(counted, 1)
    report.add("all", f"{passed} of {counted} pass", "", f"{share:.1%}", f">= {BAR:.0%}", share >= BAR)
    report.finish(save=not chosen)
    return int(share < BAR or unexplained > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
