"""Every instruction set this processor has passes the same tests: each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mercer import _core

WIDTHS = ("baseline", "avx2", "avx512")


def test_the_instruction_set_in_use_is_the_one_asked_for():
    assert _core.isa() in WIDTHS
    assert WIDTHS.index(_core.isa()) <= WIDTHS.index(os.environ.get("MERCER_ISA", "avx512"))


@pytest.mark.parametrize("isa", WIDTHS[:-1])
def test_narrower_instruction_sets_pass_these_tests(isa):
    if "MERCER_ISA" in os.environ:
        pytest.skip("MERCER_ISA is set: only that instruction set is wanted")
    if isa not in WIDTHS[: WIDTHS.index(_core.isa())]:
        pytest.skip(f"{isa} is not narrower than {_core.isa()}, which has run already")
    environment = {**os.environ, "MERCER_ISA": isa}
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]
    chosen = subprocess.run(
        [sys.executable, "-c", "from mercer import _core; print(_core.isa())"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert chosen.stdout.strip() == isa
    here = Path(__file__)
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--capture=sys", f"--ignore={here}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(here.parent)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
