"""Classes and functions of a user are saved by name, and only where they are registered."""

import inspect
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import GridSearchCV

import mercer
from mercer.estimators import SVC, SVR, KernelMachine
from mercer.io import registry
from mercer.kernels import Kernel, kernel
from mercer.kernels import state as kernel_state
from models import CLASSES, X, Y
from samples import shared_letters, words


@pytest.fixture(autouse=True)
def _forget(monkeypatch):
    """Registrations of one test are not there in the next."""
    for place, name in ((registry, "_CLASSES"), (registry, "_FUNCTIONS"), (kernel_state, "_REGISTERED")):
        monkeypatch.setattr(place, name, dict(getattr(place, name)))


@kernel
class Hat(Kernel):
    scale: float = 1.0

    def of(self, pair):
        return 1 / (1 + pair.sqdist(self.scale))


@dataclass(frozen=True)
class LogCosh:
    width: float = 1.0

    def value(self, y, f):
        return np.logaddexp(f - y, y - f) * self.width

    def derivative(self, y, f):
        return np.tanh(np.subtract(f, y)) * self.width


class Quartic:
    def __init__(self, strength=1.0):
        self.strength = strength

    def value(self, t):
        return self.strength * np.power(t, 4)

    def derivative(self, t):
        return 4 * self.strength * np.power(t, 3)


class Mean(RegressorMixin, BaseEstimator):
    def __init__(self, inner=None, power=1):
        self.inner = inner
        self.power = power

    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        self.inner_ = SVR().fit(X, y)
        return self

    def predict(self, X):
        return self.inner_.predict(X) ** self.power + self.mean_


class Special(SVC):
    """A class of one's own that behaves as SVC does."""


def again(model, tmp_path):
    mercer.save(model, tmp_path / "own.mercer")
    return mercer.load(tmp_path / "own.mercer")


def test_a_kernel_a_loss_and_a_penalty(tmp_path):
    for cls in (Hat, LogCosh, Quartic):
        assert mercer.io.register(cls) is cls
    model = KernelMachine(kernel=Hat(2.0), loss=LogCosh(0.5), penalty=Quartic(0.1), max_iter=50).fit(X, Y)
    found = again(model, tmp_path)
    assert isinstance(found.kernel_, Hat)
    assert found.loss == LogCosh(0.5)
    assert found.penalty.strength == 0.1
    assert np.array_equal(found.predict(X), model.predict(X))


def test_an_estimator_and_a_function(tmp_path):
    mercer.io.register(Mean)
    mercer.io.register(Special, "MySVC")
    mercer.io.register(shared_letters)
    model = Mean(inner=SVR(C=2.0), power=2).fit(X, Y)
    found = again(model, tmp_path)
    assert found.inner.C == 2.0
    assert np.array_equal(found.predict(X), model.predict(X))
    special = Special().fit(X, CLASSES)
    assert type(again(special, tmp_path)) is Special
    f = mercer.FromFunction(shared_letters)
    assert again(f, tmp_path).f is shared_letters
    callable_kernel = SVC(kernel=shared_letters)
    assert again(callable_kernel, tmp_path).kernel is shared_letters
    model = SVC(kernel=f).fit(words(20), [w.count("a") > 0 for w in words(20)])
    assert np.array_equal(again(model, tmp_path).predict(words(9, seed=2)), model.predict(words(9, seed=2)))


@pytest.mark.parametrize("thing", [Hat, LogCosh, Mean, shared_letters], ids=["kernel", "loss", "estimator", "function"])
def test_what_is_not_registered_is_named(thing, tmp_path, monkeypatch):
    path = tmp_path / "own.mercer"
    model = mercer.FromFunction(thing) if thing is shared_letters else thing()
    with pytest.raises((ValueError, TypeError), match=rf"{thing.__name__}.*[Rr]egister"):
        mercer.save(model, path)
    assert not path.exists()
    mercer.io.register(thing)
    mercer.save(model, path)
    for place, name in ((registry, "_CLASSES"), (registry, "_FUNCTIONS"), (kernel_state, "_REGISTERED")):
        monkeypatch.setattr(place, name, {})
    with pytest.raises(
        mercer.io.NotRegistered, match=rf"own\.mercer' cannot be loaded: .*'{thing.__name__}', which is not"
    ) as e:
        mercer.load(path)
    assert "register" in str(e.value)
    assert e.value.__cause__ is None


def test_what_cannot_be_registered():
    with pytest.raises(TypeError, match="register takes a class or a function; it got 3"):
        mercer.io.register(3)
    with pytest.raises(ValueError, match=r"has no name to be written by; pass one"):
        mercer.io.register(lambda x: x)
    with pytest.raises(ValueError, match=r"no name to be written by"):
        mercer.io.register(Quartic, "mercer.SVC")
    with pytest.raises(ValueError, match=r"kernels are written by the name of their class, 'Hat', not as 'Other'"):
        mercer.io.register(Hat, "Other")
    mercer.io.register(Quartic)
    with pytest.raises(
        ValueError, match=r"\.Quartic is registered as 'Quartic' already; pass another name for .*LogCosh"
    ):
        mercer.io.register(LogCosh, "Quartic")
    mercer.io.register(Quartic)  # once more does no harm

    class Loose:
        def __init__(self, **anything):
            pass

    with pytest.raises(TypeError, match=r"Loose takes any arguments, .* cannot be known; name them"):
        mercer.io.register(Loose)


def test_a_class_that_forgets_its_arguments_is_told(tmp_path):
    class Forgetful:
        def __init__(self, width):
            self._width = width

    mercer.io.register(Forgetful)
    with pytest.raises(TypeError, match=r"Forgetful whose argument 'width' is not kept as an attribute"):
        mercer.save(Forgetful(3), tmp_path / "f.mercer")


def test_a_class_of_kernels_of_one_s_own_in_a_search(tmp_path, monkeypatch):
    search = mercer.KernelSearchCV(SVC(), [Hat], {"C": [1.0]}, cv=2)
    with pytest.raises(TypeError, match=r"is the class Hat, which is not data"):
        mercer.save(search, tmp_path / "s.mercer")
    mercer.io.register(Hat)
    assert again(search, tmp_path).kernels == [Hat]
    monkeypatch.setattr(kernel_state, "_REGISTERED", {})
    with pytest.raises(mercer.io.NotRegistered, match=r"names the kernel 'Hat', which is not registered here"):
        mercer.load(tmp_path / "own.mercer")


def test_every_class_of_the_list_is_there():
    for module in registry._LIBRARY:
        imported = import_module(module)
        for name in registry._names(module):
            assert inspect.isclass(getattr(imported, name)), f"{module}.{name}"


def test_what_holds_a_model_is_told_which_part_to_save(tmp_path):
    search = GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2).fit(X, CLASSES)
    with pytest.raises(mercer.io.NotRegistered, match=r"is a GridSearchCV, .* save its best_estimator_"):
        mercer.save(search, tmp_path / "s.mercer")
    assert np.array_equal(again(search.best_estimator_, tmp_path).predict(X), search.predict(X))


def test_classes_are_written_by_names_that_say_nothing_of_their_module():
    ours = [module for module in registry._LIBRARY if module.startswith("mercer.")]
    found = [getattr(import_module(module), name) for module in ours for name in registry._names(module)]
    classes = [cls for cls in found if inspect.isclass(cls) and not inspect.isabstract(cls)]
    classes = [cls for cls in classes if cls not in (mercer.losses.Loss, mercer.losses.Penalty)]  # made of others
    assert len(classes) > 50
    written = {cls: registry.entry_of(cls) for cls in classes}
    assert [cls for cls, entry in written.items() if entry is None] == [mercer.losses.Box]
    assert all(entry.name == f"mercer.{cls.__name__}" for cls, entry in written.items() if entry)


def test_version_1_named_the_modules_of_classes():
    assert registry.entry_named("mercer.solvers.gp.space.Space").cls is registry.entry_named("mercer.Space").cls
    assert registry.entry_named("mercer.estimators.SVC").name == "mercer.SVC"
    with pytest.raises(mercer.io.NotRegistered):
        registry.entry_named("mercer.solvers.Control")
