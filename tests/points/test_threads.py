"""One pool of threads: tasks in order, no deadlock, no threads left behind by a fork."""

import multiprocessing
import os
import threading

import numpy as np
import pytest

from mercer import RBF, Gram
from mercer.points import threads

X = np.random.default_rng(0).standard_normal((400, 3))  # more pairs than are computed in place
several = pytest.mark.skipif(threads.cores() == 1, reason="one core: everything runs in place")


def test_results_come_in_order():
    assert threads.run(lambda i: i * i, range(100)) == [i * i for i in range(100)]
    assert threads.run(lambda i: i, []) == []
    assert threads.run(lambda i: i, iter([3])) == [3]


@several
def test_tasks_run_beside_one_another():
    both = threading.Barrier(2)
    threads.run(lambda _: both.wait(timeout=30), range(2))


def test_one_task_runs_in_place():
    assert threads.run(lambda _: threading.get_ident(), [0]) == [threading.get_ident()]


def test_tasks_within_tasks_do_not_wait_for_one_another():
    def outer(i):
        return sum(threads.run(lambda j: sum(threads.run(lambda k: i + j + k, range(5))), range(5)))

    done = threads.run(outer, range(4 * threads.cores()))
    assert done == [25 * i + 100 for i in range(4 * threads.cores())]


def test_matrices_within_tasks():
    K = RBF(1.0)(X)
    for other in threads.run(lambda _: RBF(1.0)(X), range(6)):
        np.testing.assert_array_equal(other, K)


def test_an_error_of_a_task_reaches_the_caller_and_the_pool_survives():
    def fail(i):
        if i == 3:
            raise ValueError("task 3")
        return i

    with pytest.raises(ValueError, match="task 3"):
        threads.run(fail, range(8))
    assert threads.run(lambda i: i, range(8)) == list(range(8))


def test_threads_of_the_caller_s_own():
    K, found = RBF(1.0)(X), []
    mine = [threading.Thread(target=lambda: found.append(RBF(1.0)(X))) for _ in range(8)]
    for t in mine:
        t.start()
    for t in mine:
        t.join(timeout=60)
    assert len(found) == 8
    assert all((f == K).all() for f in found)


def _in_child(answers):
    answers.put((Gram(RBF(1.0), X).matvec(np.ones(len(X))), RBF(1.0)(X)[0], threads.run(lambda i: i, range(10))))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    expected = Gram(RBF(1.0), X).matvec(np.ones(len(X)))  # the parent's pool exists now
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(answers,))
    child.start()
    child.join(timeout=60)
    alive = child.is_alive()
    if alive:
        child.kill()
    assert not alive, "the child waits for threads that did not come along"
    assert child.exitcode == 0
    product, row, order = answers.get()
    np.testing.assert_array_equal(product, expected)
    np.testing.assert_array_equal(row, RBF(1.0)(X)[0])
    assert order == list(range(10))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_the_pool_is_busy():
    """The tasks under way are the parent's; the child waits for none of them."""
    started, release = threading.Event(), threading.Event()

    def task(_):
        started.set()
        return release.wait(timeout=60)

    busy = threading.Thread(target=lambda: threads.run(task, range(4)))
    busy.start()
    assert started.wait(timeout=60)
    context = multiprocessing.get_context("fork")
    child = context.Process(target=threads.run, args=(abs, range(10)))
    child.start()
    child.join(timeout=60)
    code = child.exitcode
    if code is None:
        child.kill()
    release.set()
    busy.join(timeout=60)
    assert code == 0


def test_the_number_of_cores_is_what_this_process_may_use():
    assert 1 <= threads.cores() <= (os.cpu_count() or 1)
    if hasattr(os, "sched_setaffinity"):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        try:
            assert threads.cores() == 1
            assert threads.run(lambda _: threading.get_ident(), range(3)) == [threading.get_ident()] * 3
        finally:
            os.sched_setaffinity(0, allowed)
