"""Model files of every version of the format are read by this one, and predict what they predicted."""

import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning

import mercer
import models
from cases import each
from mercer.io import container

FOLDER = Path(__file__).parent / "fixtures"
FILES = sorted(FOLDER.glob("v*/*.mercer"))


def test_this_version_has_files():
    assert len([f for f in FILES if f.parent.name == f"v{container.VERSION}"]) >= 10
    assert all(f.stat().st_size < 30_000 for f in FILES)


@each("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_old_files_predict_as_they_did(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # of scikit-learn, for its own classes
        model = mercer.load(path)
    case = next(c for c in models.CASES if c.name == mercer.io.facts(path)["case"])
    found = models.answers(model, case.X)
    with np.load(path.with_suffix(".npz")) as expected:
        assert expected.files
        for key in expected.files:
            if expected[key].dtype.kind == "f":
                np.testing.assert_allclose(found[key], expected[key], rtol=1e-7, atol=1e-9)
            else:
                assert np.array_equal(found[key].astype(expected[key].dtype), expected[key])
    assert repr(model)
    if hasattr(model, "certificate_"):
        assert model.certificate_.verify(case.X, case.y, **case.fit).relative_gap < 1e-2
