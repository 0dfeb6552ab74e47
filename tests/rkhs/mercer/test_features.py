"""The truncated feature map as a scikit-learn transformer."""

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from checks import assert_no_fault
from mercer import RBF, FromFeatures, FromFunction, Linear, Matern
from mercer.rkhs import Box, MercerExpansion, MercerFeatures

X = np.random.default_rng(0).uniform(-1, 1, (80, 2))


def test_scikit_learn_finds_no_fault():
    assert_no_fault(MercerFeatures(RBF(1.0), n_components=3))


def test_features_are_uncentred_principal_components():
    ours = MercerFeatures(RBF(1.0), n_components=4).fit(X)
    F = ours.transform(X)
    values, vectors = np.linalg.eigh(RBF(1.0)(X))
    theirs = (vectors * np.sqrt(values.clip(0)))[:, ::-1][:, :4]
    assert np.allclose(np.abs(F), np.abs(theirs))
    assert np.allclose(ours.eigenvalues_ * len(X), values[::-1][:4])


def test_they_leave_less_of_the_kernel_than_others_do():
    # The best matrix of rank 5 is nearer to K than that of centred principal components and a constant.
    K = RBF(1.0)(X)
    F = MercerFeatures(RBF(1.0), n_components=5).fit_transform(X)
    P = KernelPCA(4, kernel="precomputed").fit_transform(K)
    P = np.column_stack([P, np.full(len(X), np.sqrt(K.mean()))])
    assert np.linalg.norm(K - F @ F.T) < np.linalg.norm(K - P @ P.T)


@pytest.mark.parametrize("measure", [Box([-1, -1], [1, 1]), [stats.uniform(-1, 2)] * 2], ids=["box", "laws"])
def test_another_measure_than_the_sample(measure):
    features = MercerFeatures(RBF(1.5), 20, measure).fit(X)
    assert np.abs(features.transform(X) @ features.transform(X).T - RBF(1.5)(X)).max() < 1e-3
    assert np.allclose(features.eigenvalues_, MercerExpansion(RBF(1.5), Box([-1, -1], [1, 1]), 20).eigenvalues)
    # The scale comes from the points all the same.
    assert MercerFeatures(RBF("auto"), 5, measure).fit(X).expansion_.kernel == RBF("auto").resolve(X)


def test_in_a_pipeline_a_linear_model_becomes_a_kernel_model():
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    model = make_pipeline(MercerFeatures(Matern(2.5, 1.0), n_components=30), Ridge(1e-6)).fit(X, y)
    assert model.score(X, y) > 0.999
    assert clone(model).fit(X[:40], y[:40]).score(X[40:], y[40:]) > 0.98
    assert list(model[:-1].get_feature_names_out())[:2] == ["mercerfeatures0", "mercerfeatures1"]


def test_weights_are_repetitions():
    counts = np.random.default_rng(1).integers(0, 3, len(X))
    a = MercerFeatures(RBF(1.0), 4).fit(X, sample_weight=counts)
    b = MercerFeatures(RBF(1.0), 4).fit(np.repeat(X, counts, axis=0))
    assert np.allclose(np.abs(a.transform(X)), np.abs(b.transform(X)))


def test_inputs_keep_their_precision_and_may_be_sparse():
    single = MercerFeatures(RBF(1.0), 4).fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    thin = sparse.random_array((50, 30), density=0.1, format="csr", rng=np.random.default_rng(2))
    a, b = (MercerFeatures(RBF(1.0), 4).fit_transform(data) for data in (thin, thin.toarray()))
    assert np.allclose(a, b)


def test_fewer_features_where_there_are_fewer():
    features = MercerFeatures(Linear(), 10).fit(X)
    assert features.transform(X).shape == (80, 2)
    assert len(features.get_feature_names_out()) == 2


def test_the_feature_map_of_an_expansion_is_fitted():
    expansion = MercerExpansion(RBF(0.8), Box([-1, -1], [1, 1]), 25)
    features = expansion.feature_map()
    assert np.array_equal(features.transform(X), expansion.transform(X))
    k = FromFeatures(features)
    assert np.abs(k(X) - RBF(0.8)(X)).max() <= expansion.truncation_error(X).sup + 1e-12
    assert features.fit(X).expansion_ is not expansion


def test_objects_have_no_transformer():
    expansion = MercerExpansion(FromFunction(lambda a, b: float(a == b)), ["a", "b", "a"], 2)
    with pytest.raises(TypeError, match="the points of this expansion are no vectors; use its own method transform"):
        expansion.feature_map()


def test_the_kernel_is_a_kernel():
    with pytest.raises(TypeError, match="kernel must be a kernel object"):
        MercerFeatures("rbf").fit(X)
