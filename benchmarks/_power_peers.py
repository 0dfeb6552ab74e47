"""The peers of `power.py` at their defaults. Each is fitted in a process of its own, whose Python need not have mercer.

Run as a program, with the name of a peer and a folder, it is that process: it reads FOLDER/rows.npz and writes
FOLDER/predicted.npz.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

THREADS = 2
VALIDATION = 0.2  # the share of the training rows on which xRFM chooses its iteration
PACKAGES = {  # what a peer is imported from
    "hgb": "sklearn",
    "forest": "sklearn",
    "catboost": "catboost",
    "lightgbm": "lightgbm",
    "xrfm": "xrfm",
}
# Its threads would otherwise be as many as the processor has.
LIMITS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS))


class Absent(Exception):
    """No interpreter that we know of has the peer."""


@dataclass
class Rows:
    """What a contender is given: a table or an array of training and of test rows, and the training target.

    Classes are numbered from 0.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    classify: bool
    seed: int


# -- the peers, here X is a table whose texts are of the category type ------------------------------------


def hgb(rows: Rows) -> np.ndarray:
    """Histogram gradient boosting of scikit-learn."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if rows.classify else HistGradientBoostingRegressor
    model = kind(categorical_features="from_dtype", random_state=rows.seed)
    return np.asarray(model.fit(rows.X, rows.y).predict(rows.X_test))


def forest(rows: Rows) -> np.ndarray:
    """Random forest of scikit-learn, for tables of numbers."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if rows.classify else RandomForestRegressor
    model = kind(n_jobs=THREADS, random_state=rows.seed)
    return np.asarray(model.fit(rows.X, rows.y).predict(rows.X_test))


def catboost(rows: Rows) -> np.ndarray:
    """CatBoost, which takes categories as texts."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if rows.classify else CatBoostRegressor
    model = kind(thread_count=THREADS, random_seed=rows.seed, verbose=False, allow_writing_files=False)
    texts = _texts(rows.X)
    X, X_test = rows.X.copy(), rows.X_test.copy()
    for part in (X, X_test):
        part[texts] = part[texts].astype(object).fillna("unknown")
    return np.asarray(model.fit(X, rows.y, cat_features=texts).predict(X_test)).ravel()


def lightgbm(rows: Rows) -> np.ndarray:
    """LightGBM, which takes categories by their type."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if rows.classify else LGBMRegressor
    model = kind(n_jobs=THREADS, random_state=rows.seed, verbose=-1)
    return np.asarray(model.fit(rows.X, rows.y).predict(rows.X_test))


def xrfm(rows: Rows) -> np.ndarray:
    """The xRFM of Beaglehole et al. (2025), prepared as its page says: standardised numbers, one-hot categories.

    Its kernel has no offset, so targets of a regression are standardised, too.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from xrfm import xRFM

    order = np.random.default_rng(rows.seed).permutation(len(rows.y))
    held = round(VALIDATION * len(order))
    held_out, learned = order[:held], order[held:]
    texts = _texts(rows.X)
    encoder = make_column_transformer(
        (StandardScaler(), [name for name in rows.X.columns if name not in texts]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
    ).fit(rows.X.iloc[learned])
    X, X_test = (encoder.transform(part).astype(np.float32) for part in (rows.X, rows.X_test))
    y, centre, unit = rows.y, 0.0, 1.0
    if not rows.classify:
        centre, unit = y[learned].mean(), y[learned].std()
        y = ((y - centre) / unit).astype(np.float32)
    model = xRFM(device="cpu", n_threads=THREADS, random_state=rows.seed, verbose=False)
    model.fit(X[learned], y[learned], X[held_out], y[held_out])
    predicted = np.asarray(model.predict(X_test)).ravel()
    return predicted if rows.classify else centre + unit * predicted.astype(float)


PEERS = {"hgb": hgb, "catboost": catboost, "lightgbm": lightgbm, "xrfm": xrfm, "forest": forest}


def _texts(X: Any) -> list[str]:
    return [name for name in X.columns if X[name].dtype == "category"]


# -- from process to process ------------------------------------------------------------------------------


def fitted(name: str, rows: Rows, given: str | None) -> tuple[np.ndarray, dict[str, Any]]:
    """Return a peer's predictions, and its seconds and version; raise Absent where it cannot be imported."""
    python = interpreter(PACKAGES[name], given)
    with tempfile.TemporaryDirectory() as folder:
        _write(rows, Path(folder))
        command = [python, __file__, name, folder]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | LIMITS)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise RuntimeError(f"{name} failed: {last}")
        with np.load(Path(folder) / "predicted.npz") as found:
            return found["predicted"], json.loads(str(found["about"]))


@cache
def interpreter(package: str, given: str | None) -> str:
    """Return the Python that has the package: the one that runs this, or else the one that was given."""
    for python in filter(None, (sys.executable, given)):
        looks = f"import importlib.util as u, sys; sys.exit(u.find_spec({package!r}) is None)"
        if subprocess.run([python, "-c", looks]).returncode == 0:
            return python
    raise Absent(f"{package} is not installed" + ("" if given else "; name a Python that has it by --peers"))


def _write(rows: Rows, folder: Path) -> None:
    import pandas as pd

    both = pd.concat([pd.DataFrame(rows.X), pd.DataFrame(rows.X_test)])
    columns = {}
    for number, name in enumerate(both.columns):
        values = both[name].to_numpy()
        columns[f"column{number}"] = values if values.dtype.kind in "ifb" else values.astype(str)
    np.savez(folder / "rows.npz", y=rows.y, classify=rows.classify, seed=rows.seed, **columns)


def _read(folder: Path) -> Rows:
    import pandas as pd

    with np.load(folder / "rows.npz") as kept:
        y, classify, seed = kept["y"], bool(kept["classify"]), int(kept["seed"])
        X = pd.DataFrame({name: kept[name] for name in kept.files if name.startswith("column")})
    train, test = X.iloc[: len(y)].copy(), X.iloc[len(y) :].copy()
    for name in X.columns:
        if X[name].dtype.kind not in "ifb":
            known = pd.CategoricalDtype(sorted(train[name].unique()))  # a value of test rows only is a missing one
            train[name], test[name] = train[name].astype(known), test[name].astype(known)
    return Rows(train, y, test, classify, seed)


def main() -> None:
    """Fit one peer, and write what it predicts."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    rows = _read(folder)
    package = {"sklearn": "scikit-learn"}.get(PACKAGES[name], PACKAGES[name])
    for module in (PACKAGES[name], "sklearn.compose", "sklearn.ensemble"):  # loading is not timed
        import_module(module)
    start = time.perf_counter()
    predicted = PEERS[name](rows)
    about = {"seconds": time.perf_counter() - start, "version": version(package)}
    np.savez(folder / "predicted.npz", predicted=predicted, about=json.dumps(about))


if __name__ == "__main__":
    main()
