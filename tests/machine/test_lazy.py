"""Properties that are computed once."""

import threading

import pytest

from mercer.machine.lazy import cached_property


class Slow:
    def __init__(self):
        self.begun, self.over, self.calls = threading.Event(), threading.Event(), 0

    @cached_property
    def value(self):
        """What it is."""
        self.calls += 1
        self.begun.set()
        self.over.wait(60)
        return object()


def test_it_is_computed_once_and_says_what_it_is():
    slow = Slow()
    slow.over.set()
    assert slow.value is slow.value
    assert slow.calls == 1
    assert Slow.value.__doc__ == "What it is."
    del slow.value
    assert slow.value is slow.__dict__["value"]
    assert slow.calls == 2


def test_while_a_thread_computes_another_object_does_not_wait():
    busy, other = Slow(), Slow()
    thread = threading.Thread(target=lambda: busy.value, daemon=True)
    thread.start()
    assert busy.begun.wait(60)
    other.over.set()
    found = []
    second = threading.Thread(target=lambda: found.append(other.value), daemon=True)
    second.start()
    second.join(60)
    assert found == [other.value]
    assert not busy.over.is_set()
    busy.over.set()
    thread.join()


def test_threads_that_ask_at_once_get_the_same_object():
    slow, found = Slow(), []
    threads = [threading.Thread(target=lambda: found.append(slow.value), daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert slow.begun.wait(60)
    slow.over.set()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(map(id, found))) == 1


def test_an_error_is_not_kept():
    class Fails:
        calls = 0

        @cached_property
        def value(self):
            self.calls += 1
            if self.calls == 1:
                raise ValueError("not yet")
            return self.calls

    fails = Fails()
    with pytest.raises(ValueError, match="not yet"):
        fails.value
    assert fails.value == 2
