"""The similarity by edit distance."""

import numpy as np
import pytest
from hypothesis import given

from mercer import EditSimilarity, FromFunction
from strings_by_hand import STRINGS, edits


@given(X=STRINGS.map(lambda X: [x[:5] for x in X]))
def test_counts_edits(X):
    slow = FromFunction(lambda x, z: float(np.exp(-edits(x, z) / 3.0)))
    np.testing.assert_allclose(EditSimilarity(3.0)(X), slow(X), rtol=1e-12)


def test_is_not_proven():
    assert EditSimilarity().proof().status == "unproven"
    with pytest.raises(ValueError, match="scale of EditSimilarity must be > 0"):
        EditSimilarity(0.0)
