"""One pool of threads: tasks in order, no deadlock, no threads left behind by a fork."""

import ast
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import mercer
from mercer import RBF, Gram
from mercer.machine import threads

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


def test_tasks_that_run_while_another_fails_are_told_to_stop():
    begun, told = threading.Event(), threading.Event()

    def task(i):
        if i == 0:
            begun.wait(timeout=30)
            raise ValueError("task 0")
        stop = threads.stop()
        begun.set()
        for _ in range(3000):
            if stop[0]:
                return told.set()
            time.sleep(0.01)

    with threadpool_limits(2), pytest.raises(ValueError, match="task 0"):
        threads.run(task, range(2))
    assert told.wait(timeout=30)
    assert not threads.stop()[0]


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


def test_the_number_of_cores_is_what_this_process_may_use(fresh, monkeypatch):
    monkeypatch.delenv("MERCER_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert 1 <= threads.cores() <= (os.cpu_count() or 1)
    if hasattr(os, "sched_setaffinity"):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        try:
            assert threads.cores() == 1
            assert threads.run(lambda _: threading.get_ident(), range(3)) == [threading.get_ident()] * 3
        finally:
            os.sched_setaffinity(0, allowed)


# -- how many ---------------------------------------------------------------------------------------------

# What a process says of itself: its threads by our count, those of the pool that a barrier shows to be there, and BLAS.
PROGRAM = """
import threading, time
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits
from mercer.machine import threads

def used():
    n = threads.cores()
    if n > 1:
        both = threading.Barrier(n)
        threads.run(lambda _: both.wait(timeout=60), range(n))
    return n, sum(t.name.startswith("mercer") for t in threading.enumerate())
"""


def said(program, **environment):
    """Return what a program prints in a process of its own, with nothing said of threads but what is given."""
    plain = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program],
        env={**plain, **environment},
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"MERCER_NUM_THREADS": "3", "OMP_NUM_THREADS": "1"}, (3, 3)),
        ({"OMP_NUM_THREADS": " 1, 4"}, (1, 0)),
    ],
    ids=str,
)
def test_variables_of_the_environment_are_obeyed(environment, expected):
    assert said("print(used())", **environment) == expected


@pytest.fixture
def fresh():
    """Let what is said of threads be read anew, in the test and after it."""
    threads._said.cache_clear()
    yield
    threads._said.cache_clear()


@pytest.mark.parametrize("text", ["many", "0", "-1", "1.5"])
def test_what_is_no_number_is_ignored_with_one_warning(fresh, monkeypatch, text):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("MERCER_NUM_THREADS", raising=False)
    usual = threads.cores()
    threads._said.cache_clear()
    monkeypatch.setenv("MERCER_NUM_THREADS", text)
    with pytest.warns(UserWarning, match=f"MERCER_NUM_THREADS='{text}' is ignored: it must be a number of") as caught:
        assert [threads.cores(), threads.cores()] == [usual, usual]
    assert len(caught) == 1


def test_limits_of_threadpoolctl_are_obeyed_while_they_hold():
    """They beat the environment; the pool follows, and those of BLAS alone leave it as it is."""
    program = """
found = [used()]
for n, api in ((4, None), (2, "openmp"), (1, None), (1, "blas")):
    with threadpool_limits(n, user_api=api):
        found.append(used())
        with threadpool_limits(1, user_api="blas"):
            pass
        found[-1] += (threads.cores(),)
    deadline = time.monotonic() + 30
while used()[1] != 3 and time.monotonic() < deadline:
    time.sleep(0.01)  # the threads of the other pools end
info = [i["num_threads"] for i in threadpool_info() if i["internal_api"] == "mercer"]
print((found[0], [(n, m) for n, _, m in found[1:]], found[1][1] >= 4, used(), info))
"""
    found = said(program, MERCER_NUM_THREADS="3")
    assert found == ((3, 3), [(4, 4), (2, 2), (1, 1), (3, 3)], True, (3, 3), [3])


def test_numpy_is_held_beside_scipy_and_let_go():
    def numbers():
        return {"numpy" in i["filepath"]: i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}

    before = numbers()
    with threads.scipy_alone():
        within = numbers()
    assert numbers() == before
    if set(before) == {False, True}:  # each has its own
        assert within == {True: 1, False: before[False]}


def test_blas_is_held_where_our_solvers_use_it_and_nowhere_else():
    program = """
def blas():
    return max(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")

from mercer import RBF, KernelRidge
from mercer.solvers.systems import ridge
seen, plain = [], ridge._Ridge.run
ridge._Ridge.run = lambda self: (seen.append(blas()), plain(self))[1]
X = np.random.default_rng(0).normal(size=(50, 2))
with threadpool_limits(2, user_api="blas"):
    KernelRidge(kernel=RBF(1.0)).fit(X, X[:, 0])
    seen.append(blas())
print(seen)
"""
    assert said(program, MERCER_NUM_THREADS="1") == [1, 2]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "1000 100000\n"}, 1),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n",
                "sys/fs/cgroup/a/cpu.max": "300000 100000\n",
            },
            3,
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/\n3:cpu,cpuacct:/docker/1\n0::/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "250000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "50000\n",
            },
            5,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
)
def test_the_quota_is_the_least_of_the_groups(tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert threads.quota(tmp_path) == expected


def test_a_quota_limits_what_the_affinity_mask_allows(fresh, monkeypatch):
    monkeypatch.setattr(threads, "quota", lambda: 1)
    monkeypatch.delenv("MERCER_NUM_THREADS", raising=False)
    assert threads.cores() == 1
    threads._said.cache_clear()
    monkeypatch.setenv("MERCER_NUM_THREADS", "2")
    assert threads.cores() == 2


@several
def test_jobs_of_joblib_share_the_cores():
    program = """
from joblib import parallel_backend
from sklearn.model_selection import GridSearchCV
from mercer import SVC

def score(model, X, y):
    from mercer.machine import threads
    return float(threads.cores())

X, found = np.arange(12.0)[:, None], {}
for backend in ("loky", "threading"):
    with parallel_backend(backend, n_jobs=2):
        search = GridSearchCV(SVC(), {"C": [1.0, 2.0]}, scoring=score, cv=2).fit(X, np.arange(12) % 2)
    found[backend] = set(search.cv_results_["mean_test_score"].tolist())
print((threads.cores(), found))
"""
    whole, parts = said(program)
    assert parts == {"loky": {whole // 2}, "threading": {whole // 2}}


def test_work_that_is_shared_tells_how_far_it_is():
    seen = []
    with threads.watched(lambda done, total: seen.append((done, total))):
        K = mercer.Subsequence(2)(["abc" * k for k in range(1, 60)])
    assert seen[-1][0] == seen[-1][1] > 1
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert (mercer.Subsequence(2)(["abc" * k for k in range(1, 60)]) == K).all()
    assert len(seen) == seen[-1][1]  # nobody is told any more


def test_a_bar_goes_to_standard_error(capsys):
    with mercer.progress("strings"):
        mercer.Subsequence(2)(["abc", "bc"])
    assert capsys.readouterr().out == ""


def test_shares_cover_everything_once():
    for n in (1, 1023, 1024, 5001):
        assert np.array_equal(np.concatenate([np.arange(n)[s] for s in threads.shares(n)]), np.arange(n))
