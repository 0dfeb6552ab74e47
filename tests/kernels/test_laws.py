"""The laws of `mercer.testing`: every sample obeys them, random composites obey them, wrong kernels are caught."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cases import each
from mercer import Gram, testing
from mercer.kernels import (
    RBF,
    ArcCosine,
    Cauchy,
    ChiSquared,
    Constant,
    Cosine,
    Delta,
    FromFunction,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Proof,
    RationalQuadratic,
    SpectralMixture,
    Wendland,
    kernel,
)
from mercer.testing import check_kernel, rounding
from samples import SAMPLES, Sample, of_vectors, vectors


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_sample_obeys_every_law(sample: Sample):
    check_kernel(sample.kernel, sample.points(), sample.points(9, seed=1))


def test_samples_cover_every_kernel_of_the_library():
    from mercer import kernels

    other = {"Kernel", "Stationary", "Radial", "Proof", "kernel", "Metric"}
    other |= {"kernel_from_state", "kernel_to_state", "register_kernel", "parse_kernel", "ExpressionError"}
    sampled = {type(node).__name__ for sample in SAMPLES for node in _nodes(sample.kernel)}
    assert set(kernels.__all__) - other == sampled


def _nodes(k: Kernel):
    return [k, *(v for v in k.get_params().values() if isinstance(v, Kernel))]


RULES = {"Sum", "Product", "Scaled", "Power", "Normalized", "On", "Transformed"}
FINITE = {"Ranked", "Linear", "Polynomial", "Cosine", "Constant", "FromFeatures", "Composed", "Rescaled", *RULES}
FINITE |= {"Kendall", "PowerSeries", "Spectrum", "TextNGrams", "GappedKmers", "WeightedDegree"}
FINITE |= {"Graphlets", "Propagation", "ShortestPath", "WeisfeilerLehman", "WLOptimalAssignment"}
STATIONARY = {"RBF", "Laplacian", "Matern", "RationalQuadratic", "Cauchy", "Periodic", "Spectral", "SpectralMixture"}


@each("sample", SAMPLES, ids=str)
def test_a_feature_map_has_the_kernel_as_inner_product(sample: Sample):
    X = sample.points()
    k = sample.kernel.resolve(X)
    if not {type(node).__name__ for node in _nodes(k)} <= FINITE or getattr(k, "shift", 0):
        with pytest.raises(TypeError, match="has no finite exact feature map; approximate it"):
            k.feature_map()
        return
    F = k.feature_map().fit_transform(X)
    F = F.toarray() if sparse.issparse(F) else np.asarray(F)
    K = k(X)
    np.testing.assert_allclose(F @ F.T, K, rtol=1e-11, atol=1e-12 * np.abs(K).max())


@each("sample", [s for s in SAMPLES if of_vectors(s)], ids=str)
def test_a_spectral_law_has_the_kernel_as_characteristic_function(sample: Sample):
    X = sample.points()
    k = sample.kernel.resolve(X)
    if not {type(node).__name__ for node in _nodes(k)} <= STATIONARY | RULES | {"Constant"}:
        with pytest.raises(TypeError, match=r"has no known spectral law|has a spectral law, but"):
            k.spectral_law(3)
        return
    delta = (X[:, None] - X[None]).reshape(-1, 3)
    wanted = k.amplitude(3) * k.spectral_law(3).characteristic(delta).reshape(len(X), -1)
    np.testing.assert_allclose(k(X), wanted, atol=1e-12)


# -- random composites ------------------------------------------------------------------------------------


def magnitudes(X):
    return np.abs(X)


def halves(X):
    return np.concatenate([X, X[:, :1] / 2], axis=1)


def decay(X):
    return 1.0 / (1.0 + np.abs(X[:, 0]))


def leaves(d: int) -> st.SearchStrategy[Kernel]:
    number = st.sampled_from([0.3, 1.0, 2.5])
    scale = number | st.lists(number, min_size=d, max_size=d) | st.just("auto") | st.just("median")
    return st.one_of(
        st.just(Linear()),
        st.builds(Polynomial, degree=st.integers(1, 3), c1=st.sampled_from([0.0, 1.0]), c2=number),
        st.builds(RBF, scale),
        st.builds(Laplacian, scale),
        st.builds(Matern, nu=st.sampled_from([0.5, 0.9, 1.5, 2.5, 4.0]), scale=scale),
        st.builds(RationalQuadratic, alpha=st.sampled_from([0.5, 1.0, 20.0]), scale=scale),
        st.builds(Cauchy, scale),
        st.builds(Periodic, period=number, scale=number),
        st.just(Cosine()),
        st.builds(ArcCosine, order=st.integers(0, 2)),
        st.builds(Wendland, smoothness=st.integers(0, 2), scale=scale),
        st.builds(ChiSquared, gamma=number).map(lambda k: k.compose(magnitudes)),
        st.just(Intersection().compose(magnitudes)),
        st.builds(
            SpectralMixture,
            weights=st.just([1.0, 0.5]),
            means=st.lists(number, min_size=2, max_size=2),
            scales=st.lists(number, min_size=2, max_size=2),
        ),
        st.builds(Constant, number),
        st.just(Delta()),
    )


def composites(d: int) -> st.SearchStrategy[Kernel]:
    def grow(inner: st.SearchStrategy[Kernel]) -> st.SearchStrategy[Kernel]:
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a * b, inner, inner),
            st.builds(lambda c, a: c * a, st.sampled_from([0.0, 0.5, 3.0]), inner),
            st.builds(lambda a, p: a**p, inner, st.integers(1, 3)),
            inner.map(lambda a: a.normalized()),
            inner.map(lambda a: a.normalized().exp()),
            inner.map(lambda a: (0.9 * a.normalized()).geometric()),
            inner.map(lambda a: a.rescaled(decay)),
        )

    tree = st.recursive(leaves(d), grow, max_leaves=5)
    # Maps of the points change their width, which a scale per feature must fit: they stand outside.
    wider = st.recursive(leaves(d + 1), grow, max_leaves=3).map(lambda a: a.compose(halves))
    narrow = st.recursive(leaves(1), grow, max_leaves=3).flatmap(
        lambda a: st.integers(0, d - 1).map(lambda column: a.on([column]))
    )
    return st.one_of(tree, st.builds(lambda a, b: a + b, tree, wider), st.builds(lambda a, b: a * b, tree, narrow))


@st.composite
def matrices(draw, d: int):
    n = draw(st.integers(1, 10))
    X = np.random.default_rng(draw(st.integers(0, 10**6))).normal(size=(n, d))
    kind = draw(st.sampled_from(["as they are", "repeated", "constant", "zero", "whole", "one far out"]))
    if kind == "repeated":
        X = X[draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))]
    elif kind == "constant":
        X[:] = 3.0
    elif kind == "zero":
        X[0] = 0.0
    elif kind == "whole":
        X = X.round()
    elif kind == "one far out":
        X[-1] *= 1e6
    return X * draw(st.sampled_from([1.0, 1e-150, 1e-30, 1e-5, 1e5, 1e30, 1e100]))


cases = st.integers(1, 4).flatmap(lambda d: st.tuples(composites(d), matrices(d)))


@settings(max_examples=30)
@given(cases)
def test_random_composites_obey_every_law(case):
    obeys(*case)


@pytest.mark.long
@settings(max_examples=3000)
@given(cases)
def test_many_random_composites_obey_every_law(case):
    obeys(*case)


def obeys(k: Kernel, X: np.ndarray) -> None:
    refusal = refused(k, X)
    if refusal:  # huge points: a sentence rather than infinity
        assert "outside the range of float64; scale the features" in refusal
    else:
        check_kernel(k, X)


def refused(k: Kernel, X: np.ndarray) -> str:
    try:
        k(X)
    except FloatingPointError as error:
        return str(error)
    return ""


# -- points of other kinds --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "points",
    [
        vectors().astype(np.float32),
        sparse.csr_array(vectors() * (vectors(seed=3) > 0)),
        sparse.random_array((20, 500), density=0.01, format="csr", rng=0),
        pd.DataFrame(vectors(), columns=["a", "b", "c"]),
        vectors().tolist(),
    ],
    ids=["float32", "sparse", "very sparse", "pandas", "lists"],
)
@pytest.mark.parametrize("k", [RBF(1.5) + Linear(), Matern(0.8, "median").normalized(), Cosine() * Laplacian(2.0)])
def test_points_may_be_matrices_of_any_kind(k, points):
    check_kernel(k, points)


def test_tensors_are_checked_as_arrays():
    torch = pytest.importorskip("torch")
    check_kernel(RBF("auto") + Linear(), torch.as_tensor(vectors()))


# -- wrong kernels, one for each law ----------------------------------------------------------------------


class Claims(Kernel):
    """A kernel that says it is proven."""

    def of(self, pair):
        return pair.xp.exp(-0.5 * pair.sqdist())

    def _proof(self) -> Proof:
        return self._axiom("hope", "it looks like one.")


def first(points):
    return points.vectors[:, 0]


@kernel
class Lopsided(Claims):
    def of(self, pair):
        return pair.left(first) + 0 * pair.dot


@kernel
class LopsidedByArrays(Claims):
    def of(self, pair):
        return pair.left(first) + 0 * pair.dot + pair.call(lambda x, z: 0.0)


@kernel
class WrongDiagonal(Claims):
    def diag(self, X):
        return 2.0 * super().diag(X)


@kernel
class Infinite(Claims):
    def of(self, pair):
        return pair.xp.exp(1000 + pair.sqdist())


class _TracedOtherwise(Claims):
    def of(self, pair):
        compiled = type(pair).__name__ == "Traced"
        return pair.sqdist() * (2.0 if compiled else 1.0)


@kernel
class TwoFormulas(_TracedOtherwise):
    pass


@kernel
class DependsOnTheBlock(Claims):
    def of(self, pair):
        return pair.call(lambda x, z: 0.0) + getattr(pair, "shape", (1,))[0]


@kernel
class NotPositive(Claims):
    def of(self, pair):
        return -pair.sqdist()


@kernel
class AboveItsDiagonal(Claims):
    def of(self, pair):
        return 1 + pair.sqdist()


@kernel
class Cancelling(Claims):
    """exp(-|x - z|^2 / 2) with a distance that loses its digits far from the origin."""

    def of(self, pair):
        return pair.xp.exp(-0.5 * pair.call(_by_norms))

    def _proof(self) -> Proof:
        return self._axiom("none", "rounding spoils it.", own="unproven")


def _by_norms(x, z):
    return x @ x - 2 * (x @ z) + z @ z if x.dtype == np.float32 else (x - z) @ (x - z)


@kernel
class AnotherClaim(Claims):
    def _proof(self) -> Proof:
        return RBF(1.0).proof()


@kernel
class NoReason(Claims):
    def _proof(self) -> Proof:
        return self._axiom("hope", "")


@kernel
class IgnoresItsPart(Claims):
    part: Kernel = FromFunction(max)

    def _proof(self) -> Proof:
        return self._axiom("hope", "whatever the part may be.")


@kernel
class SharesItsPart(Claims):
    part: Kernel = RBF(1.0)

    def __sklearn_clone__(self):
        return type(self)(self.part)


@kernel
class ClonedToAnother(Claims):
    width: float = 1.0

    def __sklearn_clone__(self):
        return type(self)(self.width + 1)


@kernel
class PickledToAnother(Claims):
    width: float = 1.0

    def __reduce__(self):
        return PickledToAnother, (self.width + 1,)


@kernel
class PickledWithoutItsWidth(Claims):
    width: float = 2.0

    def of(self, pair):
        return pair.xp.exp(-pair.sqdist(self.width))

    def _key(self):
        return ()

    def __reduce__(self):
        return PickledWithoutItsWidth, ()


@kernel
class Mute(Claims):
    def __repr__(self) -> str:
        return "a kernel of mine"


@kernel
class Anonymous(Claims):
    width: float = 1.0

    def __repr__(self) -> str:
        return "Anonymous()"


@kernel
class Forgetful(Claims):
    width: float = 1.0

    def set_params(self, **params):
        return self


@kernel
class NeverEqual(Claims):
    def __eq__(self, other):
        return False

    __hash__ = Claims.__hash__


WRONG = {
    testing.finite: [(Infinite(), "finiteness fails for Infinite.*points 0 and 0 is inf")],
    testing.symmetry: [
        (Lopsided(), r"symmetry fails for Lopsided\(\): at .*they differ by"),
        (LopsidedByArrays(), "symmetry fails for LopsidedByArrays"),
    ],
    testing.diagonal: [(WrongDiagonal(), "the diagonal fails for WrongDiagonal.*diag is 2 and the matrix 1")],
    testing.formula: [(TwoFormulas(), "the formula fails for TwoFormulas.*the engine is .*array operations")],
    testing.blocks: [(DependsOnTheBlock(), "block = whole fails for DependsOnTheBlock")],
    testing.positive_semidefinite: [(NotPositive(), "its proof says proven, but .* has the eigenvalue -")],
    testing.cauchy_schwarz: [(AboveItsDiagonal(), "Cauchy-Schwarz fails for AboveItsDiagonal")],
    testing.proof: [
        (AnotherClaim(), "is about another kernel"),
        (NoReason(), "a step without a rule, a reason"),
        (IgnoresItsPart(), "its part .* is unproven"),
    ],
    testing.clone: [(SharesItsPart(), "shares a part"), (ClonedToAnother(), r"another kernel: .*width=2\.0")],
    testing.pickling: [
        (PickledToAnother(), "comes back from a pickle as another kernel"),
        (PickledWithoutItsWidth(width=3.0), "pickling fails for PickledWithoutItsWidth.*the copy is"),
    ],
    testing.representation: [
        (Mute(), "which does not evaluate"),
        (Anonymous(2.0), "which evaluates to another kernel"),
    ],
    testing.parameters: [(Forgetful(), "leaves Forgetful")],
    testing.equality: [(NeverEqual(), "is not equal to a kernel of the same class")],
}


@each(
    ("law", "k", "sentence"),
    [(law, k, sentence) for law, cases in WRONG.items() for k, sentence in cases],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_a_wrong_kernel_breaks_its_law_and_the_check(law, k, sentence):
    X = vectors(8)
    with pytest.raises(AssertionError, match=f"(?s){sentence}"):
        law(k, X)
    with pytest.raises(AssertionError):
        check_kernel(k, X)


def test_a_wrong_product_breaks_matvec(monkeypatch):
    right = Gram.matvec
    monkeypatch.setattr(Gram, "matvec", lambda self, v: right(self, v) * (1 + 1e-12))
    with pytest.raises(AssertionError, match="matvec fails for RBF"):
        testing.matvec(RBF(1.0), vectors())


def test_cancellation_in_single_precision_breaks_float32():
    near, far = vectors(8), vectors(8) + 1e4
    testing.float32(Cancelling(), near)
    with pytest.raises(AssertionError, match="float32 = float64 fails for Cancelling"):
        testing.float32(Cancelling(), far)


def test_laws_that_need_a_proof_are_silent_without_one():
    unproven = FromFunction(lambda x, z: -float(abs(x - z)))
    assert not unproven.proof().proven
    check_kernel(unproven, [1.0, 2.0, 5.0])


def test_lambdas_are_neither_pickled_nor_written_out():
    k = RBF(1.0).compose(lambda X: X * 2)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(k)
    check_kernel(k, vectors())


# -- the measure of rounding ------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [RBF(1.0), Linear(), Polynomial(3), Cosine(), Matern(1.5, 1.0), Laplacian(1.0)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_of_plain_kernels_is_some_units_in_the_last_place(k, dtype):
    X = vectors(20)[6:]
    found = rounding(k, X, dtype=dtype)
    size = np.sqrt(np.outer(np.diag(found.values), np.diag(found.values)))
    units = found.bound / size / np.finfo(dtype).eps
    assert 4 <= units.max() < 400
    assert not found.strained.any()


def test_rounding_grows_next_to_a_pole_and_marks_the_ends_of_the_range():
    X = vectors(8)
    tame, wild = (rounding((a * RBF(1.0)).geometric(), X).bound.max() for a in (0.5, 0.9999))
    assert wild > 1e4 * tame
    assert rounding(RBF(1.0), np.array([[0.0], [30.0]])).strained[0, 1]
