"""A model that was saved and loaded is the same model: its answers to the last bit, its parameters, its account."""

import io
import pickle

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone

import mercer
from cases import each
from mercer import RBF, Certificate, Kernel, RKHSFunction, RKHSVector, losses
from mercer.estimators import SVC, KernelRidge, Perceptron
from mercer.io.read import Reader
from mercer.io.write import Writer
from models import CASES, CLASSES, X, Y, answers, assert_same, fitted
from samples import SAMPLES, shared_letters, words

PICKY = [s for s in SAMPLES if "function" not in str(s)]


def again(model, tmp_path):
    mercer.save(model, tmp_path / "model.mercer")
    return mercer.load(tmp_path / "model.mercer")


def same(a, b):
    """Whether two parameters are alike, arrays and objects without an equality of their own included."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, type):
        return a is b
    if hasattr(a, "get_params") and not isinstance(a, Kernel):
        return type(a) is type(b) and all(same(v, b.get_params()[k]) for k, v in a.get_params().items())
    if hasattr(a, "ppf"):  # a law of scipy
        return a.dist.name == b.dist.name and np.array_equal(a.ppf([0.2, 0.9]), b.ppf([0.2, 0.9]))
    if isinstance(a, np.random.RandomState):
        return np.array_equal(a.get_state()[1], b.get_state()[1])
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a or repr(a) == repr(b))


@each("name", [c.name for c in CASES])
def test_a_fitted_model(name, tmp_path):
    case, model = fitted(name)
    found = again(model, tmp_path)
    assert type(found) is type(model)
    assert_same(answers(model, case.X), answers(found, case.X))
    asked, given = model.get_params(), found.get_params()
    assert set(asked) == set(given)
    assert all(same(asked[key], given[key]) for key in asked)
    assert set(found.__getstate__()) == set(model.__getstate__())
    assert [f.name for f in tmp_path.iterdir()] == ["model.mercer"]


@each("name", [c.name for c in CASES])
def test_a_loaded_model_can_be_copied_and_fitted_again(name, tmp_path):
    case, model = fitted(name)
    found = again(model, tmp_path)
    fresh = clone(found)
    assert same(fresh, clone(model))
    assert_same(answers(pickle.loads(pickle.dumps(found)), case.X), answers(model, case.X))
    assert_same(answers(again(found, tmp_path), case.X), answers(model, case.X))


@each("name", [c.name for c in CASES if c.y is not None])
def test_the_account_of_a_fit(name, tmp_path):
    case, model = fitted(name)
    if not hasattr(model, "certificate_"):
        pytest.skip("it gives none")
    found = again(model, tmp_path)
    assert isinstance(found.certificate_, Certificate)
    assert found.certificate_ == model.certificate_
    a, b = (m.certificate_.verify(case.X, case.y, **case.fit) for m in (model, found))
    assert (a.primal, a.dual, a.kkt) == (b.primal, b.dual, b.kkt)
    for attribute in ("plan_", "n_iter_"):
        if hasattr(model, attribute):
            assert np.array_equal(getattr(found, attribute), getattr(model, attribute))
    if hasattr(model, "history_"):
        assert repr(found.history_) == repr(model.history_)


@each("name", [c.name for c in CASES if hasattr(type(c.make()), "function_")])
def test_the_function_of_a_fit(name, tmp_path):
    case, model = fitted(name)
    f, g = model.function_, again(model, tmp_path).function_
    h = again(f, tmp_path)
    own = getattr(model, "kernel", None) == "precomputed" or hasattr(model, "encoder_")
    points = f.points if own else case.X
    if not (isinstance(f, RKHSFunction | RKHSVector)):
        pytest.skip("a function of its own kind")
    assert type(h) is type(g) is type(f)
    assert np.array_equal(f(points), g(points))
    assert np.array_equal(f(points), h(points))


@each("name", sorted(mercer.estimators.__all__))
def test_a_model_that_is_not_fitted(name, tmp_path):
    model = getattr(mercer.estimators, name)()
    found = again(model, tmp_path)
    assert type(found) is type(model)
    assert vars(found) == vars(model)


@each("sample", PICKY, ids=[str(s) for s in PICKY])
def test_kernels(sample, tmp_path):
    if any(callable(v) and not isinstance(v, Kernel) for v in sample.kernel.get_params().values()):
        pytest.skip("made of a Python function")
    found = again(sample.kernel, tmp_path)
    points = sample.points(12, seed=1)
    assert type(found) is type(sample.kernel)
    if "0x" not in repr(found):  # laws of scipy on vectors
        assert repr(found) == repr(sample.kernel)
    assert np.array_equal(found(points), sample.kernel(points))


@each("name", sorted(set(losses.__all__) - {"Loss", "Box", "Penalty"}))
def test_losses_and_penalties(name, tmp_path):
    loss = getattr(losses, name)()
    assert again(loss, tmp_path) == loss


@settings(max_examples=25)
@given(
    st.floats(1e-6, 1e6),
    st.floats(1e-3, 1e3) | st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3),
    st.none() | st.just("balanced") | st.dictionaries(st.sampled_from([2, 5, 9]), st.floats(1e-3, 1e3), min_size=3),
    st.integers(-1, 10**30),
    st.none() | st.integers(1, 2**70) | st.just("500 MB"),
)
def test_parameters_of_all_kinds(tmp_path_factory, C, scale, class_weight, max_iter, budget):
    folder = tmp_path_factory.getbasetemp()
    model = SVC(C=C, kernel=2.0 * RBF(scale) + 1.0, class_weight=class_weight, max_iter=max_iter, budget=budget)
    found = again(model, folder)
    assert found.get_params() == model.get_params()


def test_arrays_that_are_one_stay_one(tmp_path):
    _, alike = fitted("GaussianProcessRegressor")
    found = again(alike, tmp_path)
    assert alike._expansion.support is alike.X_fit_
    assert found._expansion.support is found.X_fit_
    assert found._expansion.kernel is found.kernel_
    K = RBF(1.0)(X)
    precomputed = KernelRidge(kernel="precomputed").fit(K, Y)
    mercer.save(precomputed, tmp_path / "one.mercer")
    assert (tmp_path / "one.mercer").stat().st_size < 1.8 * K.nbytes


def test_a_model_can_go_on_learning(tmp_path):
    model = Perceptron().partial_fit(X[:20], CLASSES[:20], classes=[2, 5, 9])
    found = again(model, tmp_path)
    model.partial_fit(X[20:], CLASSES[20:])
    found.partial_fit(X[20:], CLASSES[20:])
    assert np.array_equal(model.coef_, found.coef_)


def test_warm_starts_are_kept(tmp_path):
    model = SVC(C=1.0, kernel=RBF(0.5), warm_start=True).fit(X, CLASSES)
    found = again(model, tmp_path)
    assert np.array_equal(
        model.set_params(C=2.0).fit(X, CLASSES).dual_coef_, found.set_params(C=2.0).fit(X, CLASSES).dual_coef_
    )


def test_places_of_this_machine_are_not_kept(tmp_path):
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(SVC(checkpoint=str(tmp_path / "a")), memory=str(tmp_path / "b"))
    found = again(model, tmp_path)
    assert found.memory is None
    assert found[0].checkpoint is None
    assert model[0].checkpoint is not None


def test_requests_for_metadata_are_kept(tmp_path):
    with config_context(enable_metadata_routing=True):
        model = SVC().set_fit_request(sample_weight=True).set_score_request(sample_weight="w")
        found = again(model, tmp_path)
        assert repr(found.get_metadata_routing()) == repr(model.get_metadata_routing())
    assert again(model, tmp_path).get_metadata_routing() is not None


def test_the_output_that_was_set_is_kept(tmp_path):
    _, model = fitted("Monomials")
    framed = clone(model).set_output(transform="pandas").fit(X)
    assert list(again(framed, tmp_path).transform(X).columns) == list(framed.transform(X).columns)


def test_generators_go_on_where_they_were(tmp_path):
    state, generator = np.random.RandomState(3), np.random.default_rng(4)
    state.standard_normal(3)
    generator.random(5)
    a, b = again([state, generator], tmp_path)
    assert np.array_equal(a.standard_normal(5), state.standard_normal(5))
    assert np.array_equal(b.random(5), generator.random(5))


@each("name", [c.name for c in CASES])
def test_joblib_and_pickle_take_every_estimator(name):
    case, model = fitted(name)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    assert_same(answers(joblib.load(file), case.X), answers(model, case.X))
    assert_same(answers(pickle.loads(pickle.dumps(model)), case.X), answers(model, case.X))


# skops does not write pandas tables, which such a model keeps as its support vectors.
@each("name", [c.name for c in CASES if c.name != "SVR of a table"])
def test_skops_takes_every_estimator(name):
    skops = pytest.importorskip("skops.io")
    case, model = fitted(name)
    data = skops.dumps(model)
    found = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    assert_same(answers(found, case.X), answers(model, case.X))


def test_functions_and_kernels_of_words(tmp_path):
    f = RKHSFunction(mercer.Delta() + 1.0, words(30), np.arange(30.0), 2.0)
    found = again(f, tmp_path)
    assert found.points == words(30)
    assert np.array_equal(found(words(9, seed=1)), f(words(9, seed=1)))
    with pytest.raises(TypeError, match=r"f is the function shared_letters, and a model file holds no code\. Register"):
        mercer.save(mercer.FromFunction(shared_letters), tmp_path / "f.mercer")


def test_attributes_of_earlier_versions_are_read_under_their_new_names():
    _, model = fitted("Pegasos, kernel")
    writer = Writer()
    code = writer.write(model, "model")
    state = next(r["state"] for r in writer.objects if r.get("class", "").endswith("Pegasos"))
    state["history_"] = state.pop("_history")
    found = Reader(writer.objects, writer.arrays, {}).read(code)
    assert repr(found.history_) == repr(model.history_)
