"""A program that writes the model files of this version, for the tests of later ones: python write_fixtures.py.

Each version of the format has its folder. Files that are there are never changed; a new class of models adds one, and a
new version of the format a folder.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import mercer
import models
from mercer.io import container

FOLDER = Path(__file__).parent / "fixtures" / f"v{container.VERSION}"
CASES = {
    "svc": "SVC of names",
    "svc-sparse": "SVC, sparse",
    "svc-words": "SVC of words",
    "svc-precomputed": "SVC of similarities",
    "linear-svc": "LinearSVC",
    "svr-table": "SVR of a table",
    "kernel-ridge": "KernelRidge of two",
    "kernel-machine": "KernelMachine, Huber in a ball",
    "logistic": "KernelLogisticRegression",
    "gaussian-process": "GaussianProcessRegressor",
    "kernel-pca": "KernelPCA with preimages",
    "density": "KernelDensity",
    "pipeline": "pipeline",
    "search": "search of SVC",
    "mercer-features": "MercerFeatures under a law",
    "table-encoder": "TableEncoder",
    "table-model": "table model",
    "auto-classifier": "AutoClassifier",
    "auto-regressor": "AutoRegressor",
}
ANSWERS = ("predict", "decision_function", "predict_proba", "transform", "score_samples", "deviation", "quantiles")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file, name in CASES.items():
        if (FOLDER / f"{file}.mercer").exists():
            continue
        case, model = models.fitted(name)
        mercer.save(model, FOLDER / f"{file}.mercer", facts={"case": name})
        found = {k: v for k, v in models.answers(model, case.X).items() if k in ANSWERS and not isinstance(v, str)}
        np.savez_compressed(
            FOLDER / f"{file}.npz", **{k: v.astype("U") if v.dtype == object else v for k, v in found.items()}
        )


if __name__ == "__main__":
    main()
