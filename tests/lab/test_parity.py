"""The page's program and the library: the same kernels, the same proofs, the same solutions."""

import numpy as np
import pytest

from mercer import SVC, KernelMachine, parse_kernel
from mercer.losses import Absolute, Logistic, Pinball, Squared, SquaredHinge

POINTS = np.random.default_rng(7).normal(size=(40, 2))
OTHERS = np.random.default_rng(8).normal(size=(30, 2))
KERNELS = [
    "Constant(2.5)",
    "Linear()",
    "Polynomial(degree=3, c1=0.5, c2=1.5)",
    "RBF(0.7)",
    "RBF([0.5, 2.0])",
    "RBF.from_gamma(0.3)",
    "Laplacian(1.3)",
    "Matern(0.5, 1.1)",
    "Matern(1.5, 1.1)",
    "Matern(2.5, 1.1)",
    "RationalQuadratic(0.7, 1.2)",
    "Cauchy(0.8)",
    "PowerExponential(1.4, 0.9)",
    "Wendland(0, 2.0)",
    "Wendland(1, 2.0)",
    "Wendland(2, 2.0)",
    "Periodic(2.0, 0.8)",
    "Cosine()",
    "ArcCosine(0)",
    "ArcCosine(1)",
    "ArcCosine(2)",
    "Sigmoid(0.5, 0.1)",
    "RBF(1.5) + 0.5 * Linear() ** 2",
    "(RBF(1.5) * Matern(1.5, 2.0) + 1) ** 3",
    "(0.5 * Cauchy(2.0)).geometric()",
    "(RBF(0.4) + Linear()).exp()",
    "(Linear() + 1).normalized() * RBF(2.0)",
    "Wendland(1, 2.0).on([0]) + RBF(1.0).on([1])",
    "RBF(1.0).transformed([0.5, 2.0]) + Linear().transformed([[1.0, -1.0]])",
]
NON_NEGATIVE = ["ChiSquared(0.5)", "Intersection()", "ChiSquared(0.5) + Intersection() ** 2"]
# Of full rank on distinct points, so that coefficients are unique.
RICH = [
    "RBF(0.6)",
    "Matern(1.5, 1.0)",
    "Laplacian(1.5) + Linear()",
    "2 * RBF(0.8) * Cauchy(1.0)",
    "RationalQuadratic(0.7, 0.8)",
]
LOSSES = {
    "hinge": None,
    "squared_hinge": SquaredHinge(),
    "logistic": Logistic(),
    "squared": Squared(),
    "absolute": Absolute(),
    "pinball": Pinball(0.75),
}


def test_matrices_are_those_of_the_library(ask):
    texts = [(k, POINTS, OTHERS) for k in KERNELS] + [(k, np.abs(POINTS), np.abs(OTHERS)) for k in NON_NEGATIVE]
    sets = [{"kernel": k, "X": X.tolist(), "Z": Z.tolist()} for k, X, Z in texts]
    v = np.random.default_rng(1).normal(size=len(OTHERS))
    answers = ask([{"way": way, "v": v.tolist(), **one} for one in sets for way in ("matrix", "cross", "picture")])
    for (text, X, Z), own, cross, picture in zip(texts, answers[::3], answers[1::3], answers[2::3], strict=True):
        k = parse_kernel(text)
        np.testing.assert_allclose(np.reshape(own, (len(X), -1)), k(X), rtol=1e-12, atol=1e-13, err_msg=text)
        np.testing.assert_allclose(np.reshape(cross, (len(X), -1)), k(X, Z), rtol=1e-12, atol=1e-13, err_msg=text)
        size = np.abs(k(X, Z)) @ np.abs(v)
        np.testing.assert_array_less(np.abs(picture - k(X, Z) @ v), 2e-5 * size + 1e-6, err_msg=text)


def test_parameters_read_off_the_data(ask):
    texts = [
        "RBF()",
        'RBF("median")',
        "Laplacian()",
        'Laplacian("median")',
        "Matern()",
        'Polynomial(2, 1.0, "auto")',
        "Sigmoid()",
    ]
    for text, answer in zip(
        texts, ask([{"way": "matrix", "kernel": t, "X": POINTS.tolist()} for t in texts]), strict=True
    ):
        k = parse_kernel(text).resolve(POINTS)
        np.testing.assert_allclose(np.reshape(answer, (40, 40)), k(POINTS), rtol=1e-11, err_msg=text)


def test_proofs_are_those_of_the_library(ask):
    for text, answer in zip(KERNELS, ask([{"way": "proof", "kernel": k} for k in KERNELS]), strict=True):
        same_proof(parse_kernel(text).proof(), answer)


def same_proof(ours, theirs):
    assert (ours.rule, ours.reason, ours.status) == (theirs["rule"], theirs["reason"], theirs["status"])
    for one, other in zip(ours.parts, theirs["parts"], strict=True):
        same_proof(one, other)


def test_a_text_written_by_the_page_is_read_by_the_library(ask):
    for text, answer in zip(KERNELS, ask([{"way": "text", "kernel": k} for k in KERNELS]), strict=True):
        assert parse_kernel(answer) == parse_kernel(text)


WRONG = [
    "",
    "RBF(2",
    "RBF(-1)",
    "RBF(2) - Linear()",
    "-RBF(2)",
    "-2 * RBF(2)",
    "1 / RBF(2)",
    "RBF(2) ** 0.5",
    "RBF(2) ^ 2",
    "RBF(scale=1, scale=2)",
    "RBF(1, 2)",
    "Matern(nu=-1)",
    "Wendland(smoothness=3)",
    "Polynomial(degree=0)",
    "PowerExponential(2.5)",
    "2",
]


def test_what_the_library_refuses_the_page_refuses_with_the_same_sentence(ask):
    for text, answer in zip(WRONG, ask([{"way": "text", "kernel": k} for k in WRONG]), strict=True):
        with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is compared
            parse_kernel(text)
        assert answer["error"] == refused.value.sentence, text


def test_eigenvalues_and_a_witness_where_one_is_negative(ask):
    texts = ["RBF(0.5)", "Linear() + Constant(0.5)", "Constant(1.0)", "Sigmoid(gamma=1.0, c=-1.0)"]
    for text, answer in zip(
        texts, ask([{"way": "spectrum", "kernel": t, "X": POINTS.tolist()} for t in texts]), strict=True
    ):
        K = parse_kernel(text)(POINTS)
        values = np.linalg.eigvalsh(K)[::-1]
        np.testing.assert_allclose(answer["values"], values, atol=1e-12 * values[0], err_msg=text)
        if values[-1] < -1e-10 * values[0]:
            a = np.array(answer["witness"]["a"])
            assert a @ K @ a == pytest.approx(answer["witness"]["value"])
            assert a @ K @ a < 0
    assert values[-1] < 0  # of the sigmoid


def problems():
    """Fifty problems: kernels, losses, sizes and prices drawn with one seed."""
    rng = np.random.default_rng(0)
    for i in range(50):
        loss = list(LOSSES)[i % len(LOSSES)]
        n = int(rng.integers(20, 80))
        X = rng.normal(size=(n, 2))
        f = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
        y = np.where(f > 0, 1.0, -1.0) if i % len(LOSSES) < 3 else f
        yield {
            "way": "fit",
            "kernel": RICH[i % len(RICH)],
            "loss": loss,
            "quantile": 0.75,
            "C": float(10 ** rng.uniform(-1, 2)),
            "X": X.tolist(),
            "y": y.tolist(),
        }


def fitted(problem):
    """Return coefficients, offset and objective of the library, in the page's units."""
    k, loss, C = parse_kernel(problem["kernel"]), LOSSES[problem["loss"]], problem["C"]
    y = np.array(problem["y"])
    if loss is None:
        model = SVC(C=C, kernel=k, tol=1e-12).fit(problem["X"], y)
        alpha = np.zeros(len(y))
        alpha[model.support_] = model.dual_coef_[0]
        return alpha, float(model.intercept_[0]), model.certificate_.primal
    model = KernelMachine(k, loss=loss, penalty=1 / C, tol=1e-12).fit(problem["X"], y)
    return model.dual_coef_, float(np.ravel(model.intercept_)[0]), model.certificate_.primal * C


def test_fifty_problems_have_the_library_s_solutions(ask):
    asked = list(problems())
    for problem, answer in zip(asked, ask(asked), strict=True):
        alpha, offset, objective = fitted(problem)
        said = f"{problem['kernel']} {problem['loss']} C={problem['C']:.3g}"
        assert answer["gap"] < 1e-9, said
        np.testing.assert_allclose(answer["primal"], objective, rtol=1e-6, err_msg=said)
        np.testing.assert_allclose(answer["alpha"], alpha, rtol=0, atol=1e-6 * problem["C"], err_msg=said)
        share = np.abs(alpha) / problem["C"]
        if ((share > 1e-6) & (np.abs(share - 1) > 1e-6)).any():  # else every b in an interval is as good
            np.testing.assert_allclose(answer["offset"], offset, rtol=1e-6, atol=1e-6, err_msg=said)
