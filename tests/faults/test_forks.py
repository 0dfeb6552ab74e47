"""Forks while other threads compute: every child fits and predicts, whatever those were doing at that moment."""

import multiprocessing
import os
import re
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import mercer
from children import Child
from mercer import SVC, KernelRidge
from mercer.points import Points

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")

SECONDS = 60.0  # within which a child answers, on a machine that does other things as well
X = np.random.default_rng(0).normal(size=(120, 3))
Y = np.where(X[:, 0] + 0.3 * X[:, 1] ** 2 > 0.2, 1, -1)


@contextmanager
def computing():
    """Fit and predict in two threads, over and over, objects of many sizes."""
    done = threading.Event()

    def work(seed):
        rng = np.random.default_rng(seed)
        while not done.is_set():
            Z = rng.normal(size=(int(rng.integers(20, 300)), 3))
            z = np.where(Z[:, 0] > 0, 1, -1)
            SVC().fit(Z, z).predict(Z)
            KernelRidge(kernel="rbf").fit(Z, z).predict(Z)

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def answers(fitted):
    """Return the values of a model of the parent and of two of the child's own."""
    own = SVC().fit(X, Y).decision_function(X)
    return fitted.decision_function(X), own, KernelRidge(kernel="rbf").fit(X, Y).predict(X)


def compare(fitted, wanted, connection):
    connection.send(all(np.allclose(got, want) for got, want in zip(answers(fitted), wanted, strict=True)))
    connection.close()


def failures_of_forks(count):
    """Return why children of os.fork have failed."""
    fitted, failures = SVC().fit(X, Y), []
    wanted = answers(fitted)
    with computing():
        for begin in range(0, count, 10):
            for child in [Child(answers, fitted) for _ in range(begin, min(begin + 10, count))]:
                try:
                    for got, want in zip(child.answer(SECONDS)[0], wanted, strict=True):
                        np.testing.assert_allclose(got, want, atol=1e-6)
                except AssertionError as problem:
                    failures.append(str(problem))
    return failures


def failures_of_processes(count):
    """Return why processes of multiprocessing have failed, which end as Python ends."""
    fitted, failures = SVC().fit(X, Y), []
    wanted, context = answers(fitted), multiprocessing.get_context("fork")
    with computing():
        for _ in range(count):
            here, there = context.Pipe(duplex=False)
            child = context.Process(target=compare, args=(fitted, wanted, there))
            child.start()
            there.close()
            if not (here.poll(SECONDS) and here.recv()):
                failures.append("the child has not answered, or not the same")
            child.join(SECONDS)
            if child.exitcode != 0:
                failures.append(f"the child has not ended: {child.exitcode}")
                child.kill()
    return failures


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("family", [failures_of_forks, failures_of_processes])
@pytest.mark.parametrize("count", [10, pytest.param(250, marks=pytest.mark.long)])
def test_every_child_answers_as_its_parent_does(family, count):
    failures = family(count)
    print(f"\n{count} forks ({family.__name__}): {len(failures)} failures")  # noqa: T201
    assert not failures


def test_a_child_may_compute_what_a_thread_of_its_parent_was_computing():
    """What a fork hits now and then: a property of the points is being computed, here until the child has ended."""
    begun, over = threading.Event(), threading.Event()

    class Rows(list):
        def __array__(self, *args, **kwargs):
            begun.set()
            over.wait(SECONDS)
            return X

    busy = threading.Thread(target=lambda: Points(Rows(X)).vectors, daemon=True)
    busy.start()
    assert begun.wait(SECONDS)
    try:
        (values,), _ = Child(lambda: [SVC().fit(X, Y).decision_function(X)]).answer(10.0)
    finally:
        over.set()
        busy.join()
    np.testing.assert_allclose(values, SVC().fit(X, Y).decision_function(X))


def test_no_module_uses_the_property_with_a_lock():
    for path in Path(mercer.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert path.name == "lazy.py" or not re.search("^from functools import .*cached_property", text, re.M), path
