"""Forks of the test process that compute something, send it back and end, unless they are killed before."""

import os
import pickle
import select
import signal
import time
import traceback
import warnings


class Child:
    """A process that answers with what a function returns, and with the warnings it has given."""

    def __init__(self, task, *arguments):
        self._reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, from Python 3.12 on
            self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._reader)
                with os.fdopen(writer, "wb") as pipe:
                    pickle.dump(_answer(task, arguments), pipe)
            finally:
                os._exit(0)  # nothing of pytest's is to be done a second time
        os.close(writer)

    def kill(self):
        """End it at once; what it has done so far stays as it is."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._reader)

    def answer(self, seconds=60.0):
        """Return the result and the warnings; a child that hangs is killed."""
        data, deadline = b"", time.monotonic() + seconds
        while select.select([self._reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
            piece = os.read(self._reader, 1 << 16)
            if not piece:
                os.waitpid(self.pid, 0)
                os.close(self._reader)
                result, said, failure = pickle.loads(data)
                assert not failure, failure
                return result, said
            data += piece
        self.kill()
        raise AssertionError(f"the child has not answered within {seconds:g} s")


def _answer(task, arguments):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result, failure = task(*arguments), ""
        except BaseException:
            result, failure = None, traceback.format_exc()
    return result, [str(warning.message) for warning in said], failure
