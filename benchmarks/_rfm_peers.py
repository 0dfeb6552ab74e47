"""The peer of `rfm.py`: xRFM's recursive feature machine, in a process of its own, whose Python need not have mercer.

Run as a program, with the name of a solver and a folder, it is that process: it reads FOLDER/task.npz and writes
FOLDER/learned.npz.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from _power_peers import LIMITS, THREADS, interpreter

SOLVERS = {"xrfm, LU": "solve", "xrfm, Cholesky": "cholesky"}  # its default, and the one for matrices like these
SOME = 200  # rows of a first fit, which is not timed: the code is loaded


@dataclass
class Task:
    """Standardised rows and targets in columns, and the iteration that both programs do.

    Ridge regression with k(x, z) = exp(-|A (x - z)| / scale), A = 1 at first. In each round M is the sum of the outer
    products of the gradients at the training rows, divided by its largest entry, and A its root. One more fit is last.
    """

    X: np.ndarray
    Y: np.ndarray
    X_test: np.ndarray
    scale: float
    ridge: float
    rounds: int


@dataclass
class Learned:
    """The values at the test rows, M, the seconds of fit and prediction, and the version of the program."""

    values: np.ndarray
    metric: np.ndarray
    seconds: float
    version: str


def learned(task: Task) -> Learned:
    """Return what xRFM learns, in float32 as its page has it; `SOLVERS` says by which factor."""
    import torch
    from torch.backends import opt_einsum
    from xrfm.rfm_src import RFM

    torch.set_num_threads(THREADS)
    X, Y, X_test = (torch.from_numpy(part.astype(np.float32)) for part in (task.X, task.Y, task.X_test))
    solver = SOLVERS[sys.argv[1]]

    def fitted(n: int) -> tuple[Any, Any]:
        model = RFM("l2", bandwidth=task.scale, exponent=1.0, diag=False, device="cpu", verbose=False)
        model.fit(
            (X[:n], Y[:n]),
            (X[:1], Y[:1]),  # it asks for rows to choose a round by; all rounds are done here, and the last is taken
            iters=task.rounds,
            reg=task.ridge,
            solver=solver,
            early_stop_rfm=False,
            return_best_params=False,
        )
        return model, model.predict(X_test)

    fitted(SOME)
    start = time.perf_counter()
    model, values = fitted(len(X))
    seconds = time.perf_counter() - start
    said = version("xrfm") + (" with opt_einsum" if opt_einsum.is_available() else "")
    return Learned(values.numpy().astype(float), model.M.numpy().astype(float), seconds, said)


# -- from process to process ------------------------------------------------------------------------------


def theirs(who: str, task: Task, given: str | None) -> Learned:
    """Return what the peer learns; raise Absent where it cannot be imported."""
    python = interpreter("xrfm", given)
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "task.npz", **asdict(task))
        command = [python, __file__, who, folder]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | LIMITS)
        if done.returncode:
            raise RuntimeError(f"{who} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        with np.load(Path(folder) / "learned.npz") as kept:
            return Learned(kept["values"], kept["metric"], float(kept["seconds"]), str(kept["version"]))


def main() -> None:
    """Learn, and write what was learned."""
    folder = Path(sys.argv[2])
    with np.load(folder / "task.npz") as kept:
        task = Task(**{field.name: kept[field.name][()] for field in fields(Task)})
    np.savez(folder / "learned.npz", **asdict(learned(task)))


if __name__ == "__main__":
    main()
