import numpy as np
import pytest
from scipy import sparse

from checks import assert_no_fault
from mercer import RBF
from mercer.tables import SparseEncoder


def test_scikit_learn_finds_no_fault():
    assert_no_fault(SparseEncoder())


def test_columns_stay_as_they_are():
    X = sparse.random_array((20, 9), density=0.2, rng=np.random.default_rng(0), format="coo")
    encoder = SparseEncoder().fit(X)
    assert (encoder.transform(X) != X.tocsr()).nnz == 0
    np.testing.assert_array_equal(encoder.transform(X.toarray()), X.toarray())
    assert encoder.places("category", "text") == []
    assert encoder.named(RBF(1.0).on([0])) == RBF(1.0).on([0])
    with pytest.raises(ValueError, match="is expecting 9 features"):
        encoder.transform(X.tocsr()[:, :5])
    with pytest.raises(ValueError, match="contains NaN"):
        SparseEncoder().fit(X / sparse.csr_array(X.shape))
