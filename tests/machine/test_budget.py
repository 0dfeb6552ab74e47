"""Sizes in bytes: how they are read and written, and the sentence that refuses."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from cases import each
from mercer.machine import budget
from mercer.machine.budget import Budget, available_memory, readable


@each(
    ("text", "size"),
    [
        ("1", 1),
        ("512 B", 512),
        ("2kB", 2000),
        ("2 KB", 2000),
        ("2 KiB", 2048),
        ("500 MB", 500_000_000),
        ("500mib", 500 * 2**20),
        ("1.5 GiB", 3 * 2**29),
        (" 4GiB ", 4 * 2**30),
        ("4g", 4 * 10**9),
        (".5 GB", 5 * 10**8),
        ("2. TB", 2 * 10**12),
        ("1 TiB", 2**40),
        (1000, 1000),
        (1e6, 1_000_000),
        (np.int64(7), 7),
        (np.float32(8), 8),
        (Budget("1 kB"), 1000),
    ],
)
def test_sizes_are_read(text, size):
    assert Budget(text) == size
    assert isinstance(Budget(text), int)


@pytest.mark.parametrize("text", ["", "much", "GB", ".", "1.2.3 GB", "5 XB", "10 i", "-3 GB", "1e9", "1,5 GB", "inf"])
def test_texts_that_are_no_sizes(text):
    with pytest.raises(ValueError, match=r"is not a size; write bytes as a number, or a text like '500 MB' or '4 GiB'"):
        Budget(text)


@pytest.mark.parametrize("size", [0, -1, 0.5, float("nan"), float("inf"), "0 GB"])
def test_numbers_that_are_no_sizes(size):
    with pytest.raises(ValueError, match="budget must be a positive, finite number of bytes; it is"):
        Budget(size)


@pytest.mark.parametrize("size", [True, [1], b"1 GB", 1j])
def test_things_that_are_no_sizes(size):
    with pytest.raises(TypeError, match="budget must be a number of bytes or a text like '500 MB'; it is"):
        Budget(size)


@pytest.mark.parametrize(
    ("size", "text"),
    [(1, "1 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (3 * 2**30, "3 GiB"), (2**52, "4096 TiB")],
)
def test_sizes_are_written_with_the_unit_that_suits_them(size, text):
    assert readable(size) == text
    assert repr(Budget(size)) == f"Budget({text!r})"
    assert eval(repr(Budget(size))) == size


def test_a_budget_survives_pickling():
    copy = pickle.loads(pickle.dumps(Budget("3 MiB")))
    assert isinstance(copy, Budget)
    assert copy == 3 * 2**20


def test_what_does_not_fit_is_refused_with_both_sizes_and_a_remedy():
    b = Budget("1 GiB")
    b.require(2**30, "the matrix", "use less.")
    with pytest.raises(MemoryError) as refusal:
        b.require(2**30 + 2**29, "the matrix", "use less.")
    assert str(refusal.value) == "the matrix would need 1.5 GiB, more than the budget of 1 GiB; use less."


def test_no_budget_is_half_of_what_is_free(monkeypatch):
    monkeypatch.setattr(budget, "available_memory", lambda: 1000)
    assert Budget() == Budget(None) == 500


def test_free_memory_is_plausible():
    assert 64 * 2**20 <= available_memory() < 2**50


@pytest.mark.parametrize("files", [("memory.max", "memory.current"), None])
def test_a_container_s_limit_counts(files, monkeypatch, tmp_path):
    if files:
        (tmp_path / files[0]).write_text("1000000000\n")
        (tmp_path / files[1]).write_text("400000000\n")
    monkeypatch.setattr(budget, "_free_on_machine", lambda: 2 * 10**9)
    monkeypatch.setattr(budget, "Path", lambda p: tmp_path if p == "/sys/fs/cgroup" else Path(p))
    assert available_memory() == (600_000_000 if files else 2 * 10**9)


def test_an_unlimited_container_does_not(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1\n")
    monkeypatch.setattr(budget, "_free_on_machine", lambda: 2 * 10**9)
    monkeypatch.setattr(budget, "Path", lambda p: tmp_path if p == "/sys/fs/cgroup" else Path(p))
    assert available_memory() == 2 * 10**9
