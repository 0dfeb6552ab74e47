"""What holds for every test: threads shared among the workers, no display, no clock in property tests, commands."""

import os

# Before NumPy is first imported. Several pytest processes that each start one BLAS thread per core slow one
# another down far more than they gain.
_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_threads = str(max(1, (os.cpu_count() or 1) // _workers))
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, _threads)
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
