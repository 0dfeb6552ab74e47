"""What holds for every test: one thread of BLAS for each worker, no display, no clock in property tests, commands."""

import os

# Before NumPy is first imported. Where each process of pytest starts a thread of BLAS per core, these wait for one
# another: on two cores the same tests took four times the processor. The library's own threads wait without spinning,
# and some of its code runs with two or more alone. Workers inherit what the process that starts them sets.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("MERCER_NUM_THREADS", "2")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("mercer", deadline=None, print_blob=True)
settings.load_profile("mercer")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Commands as processes that need not load the library first."""
    from cli.conftest import Server

    made = Server(tmp_path_factory.mktemp("streams"))
    yield made
    made.process.stdin.close()
    made.process.wait(timeout=20)
