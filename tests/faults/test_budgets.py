"""Whoever accepts a budget keeps it, or refuses at once with an amount that would do.

Those who accept one are found by their signatures. Each is called in a process of its own, forked from one that has the
library loaded, where its peak of resident memory above that before the call is measured. The whole matrix of the points
would take four times the budget.
"""

import inspect
import json
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.machine.budget import Budget, readable

SLACK = 16 * 2**20  # bytes for the stacks of threads, buffers of BLAS, and what the allocator keeps
SMALL, LARGE = 2500, 6000  # points of the ordinary run and of the long one: budgets of 12.5 and 72 MB
SOME = ["GaussianProcessRegressor", "KernelCCA", "KernelMixture", "KernelRidge", "KernelSearchCV", "hsic_test"]
FEW = 200  # points of the calls with next to no budget
TINY = 1000  # bytes


def takers():
    """Return the names of all public classes, functions and methods that accept a budget."""
    found = ["auto"]  # passes its options on
    for name in mercer.__all__:
        thing = getattr(mercer, name)
        parts = {name: thing} if callable(thing) else {}
        if inspect.isclass(thing):
            methods = inspect.getmembers(thing, inspect.isfunction)
            parts |= {f"{name}.{key}": method for key, method in methods if not key.startswith("_")}
        found += [key for key, part in parts.items() if "budget" in inspect.signature(part).parameters]
    return found


def call(name, n, budget):
    """Call one of them on n points, with what its signature asks for; return what it gives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    y = np.sin(X[:, 0] + X[:, 1] ** 2) + 0.1 * rng.normal(size=n)
    kernels = [mercer.RBF(1.0), mercer.RBF(3.0)]
    values = {"X": X, "Y": X[::-1] + 1.0, "y": y, "kernel": kernels[1], "kernels": kernels, "estimator": mercer.SVR()}
    values |= {"param_grid": {"C": [1.0, 10.0]}, "measure": X, "k_or_matrix": kernels[1], "budget": budget}
    values |= {
        "points": X,
        "coefficients": y[:, None] if "Vector" in name else y,
        "n_components": 10,
        "n_permutations": 99,
    }
    values |= {"tol": 0.03} if "." in name else {}  # of pruning, which otherwise needs most centres of a rough function
    if "Classifier" in name or "SVC" in name or "Logistic" in name:
        values["y"] = (y > 0).astype(int) + (y > 0.7)

    def given(function):
        asked = inspect.signature(function).parameters
        return function(**{key: values[key] for key in asked if key in values})

    owner, _, method = name.partition(".")
    if name == "auto":
        return mercer.auto(X, y, kernels=kernels, budget=budget)
    made = given(getattr(mercer, owner))
    if isinstance(made, mercer.Gram):
        return [made.rows(np.arange(i, min(i + 100, n))) @ y for i in range(0, n, 100)]
    return given(getattr(made, method)) if method else given(made.fit) if hasattr(made, "fit") else made


def main(name, n, budget):
    """Print the peak of a call above what there was before it, its seconds, and how it was refused if it was."""
    warnings.simplefilter("ignore")
    call(name, 60, 10**8)  # imports, threads, buffers
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that from now on
    before, began, refused = memory("VmRSS"), time.perf_counter(), None
    try:
        call(name, n, budget)
    except MemoryError as error:
        refused = str(error)
    seconds = time.perf_counter() - began
    told = {"name": name, "peak": memory("VmHWM") - before, "seconds": seconds, "refused": refused}
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()


def memory(what):
    """Return a size of this process in bytes."""
    return int(re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024


def measured(names, n, budget):
    """Call each of them in a process of its own; return what was measured, one after the other."""
    command = [sys.executable, __file__, ",".join(names), str(n), str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600 * len(names))
    assert not done.returncode, done.stderr[-600:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def amount(said):
    """Return the amount that a refusal names."""
    return int(Budget(re.search(r"would need ([\d.]+ [KMGT]?i?B)", said)[1]))


def fault(name, n, budget, found):
    """Return what is wrong with a measured call, or None."""
    if found["peak"] > budget + SLACK:
        return f"{readable(found['peak'])} of {readable(budget)}"
    if found["refused"]:
        if len(found["refused"]) > 600:
            return f"refused at length: {found['refused']}"
        (found,) = measured([name], n, enough := amount(found["refused"]))
        return f"{readable(enough)} did not do: {found['refused']}" if found["refused"] else None
    return None


pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured on Linux")


def test_a_quarter_of_the_matrix_is_enough_or_refused_at_once():
    budget = 2 * SMALL**2
    told = measured(SOME, SMALL, budget)
    assert [found["name"] for found in told] == SOME
    assert {found["name"]: fault(found["name"], SMALL, budget, found) for found in told} == dict.fromkeys(SOME)


@pytest.mark.long
def test_all_who_accept_a_budget_keep_a_quarter_of_the_matrix():
    budget, names, faults = 2 * LARGE**2, takers(), {}
    sys.stdout.write(f"\n{'name':<26} {'n':>5} {'budget':>10} {'peak':>10} {'seconds':>8}\n")
    for found in measured(names, LARGE, budget):
        wrong = fault(name := found["name"], LARGE, budget, found)
        if wrong:
            faults[name] = wrong
        verdict = wrong or ("refused" if found["refused"] else "kept")
        sizes = f"{readable(budget):>10} {readable(max(found['peak'], 0)):>10}"
        sys.stdout.write(f"{name:<26} {LARGE:>5} {sizes} {found['seconds']:>8.1f} {verdict}\n")
    sys.stdout.write(f"{len(names) - len(faults)} of {len(names)} kept\n")
    assert not faults


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", takers())
def test_next_to_no_budget_is_refused_in_a_sentence_with_an_amount_that_does(name):
    refused = ""
    try:
        call(name, FEW, TINY)
    except MemoryError as error:
        refused = str(error)
    if refused:
        assert len(refused) <= 600
        call(name, FEW, amount(refused))


if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        child = os.fork()
        if not child:
            main(name, int(sys.argv[2]), int(sys.argv[3]))
            os._exit(0)
        assert not os.waitpid(child, 0)[1], name
