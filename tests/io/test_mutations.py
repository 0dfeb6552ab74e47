"""Thousands of damaged and hostile files: each is loaded or refused in a sentence; nothing is run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits memory by way of /proc")


def attempts(folder, count, seed):
    program = Path(__file__).with_name("mutations.py")
    done = subprocess.run(
        [sys.executable, str(program), str(folder), str(count), str(seed)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["strange"] == []
    assert found["events"] == []
    ends = found["ends"]
    assert sum(n for end, n in ends.items() if end.endswith(("loaded", "refused"))) == count
    for how in ("bytes", "manifest", "arrays"):
        assert ends[f"{how}: refused"] > count // 20
    assert ends["manifest: loaded"] > 0  # some edits leave a model: another number, another name
    assert ends.get("bytes: loaded", 0) == 0
    return ends


def test_some_mutations(tmp_path):
    attempts(tmp_path, 300, 1)


@pytest.mark.long
def test_many_mutations(tmp_path):
    attempts(tmp_path, 2000, 2)
