"""A file is written whole or not at all, and whatever is no sound model file is refused in one sentence."""

import gzip
import json
import os
import pickle
import signal
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import mercer
from mercer.io import container, limits
from mercer.io.container import DamagedFile, NewerFile

ran = []


class Canary:
    """Whoever makes or unpickles one has run code of a file."""

    def __init__(self, *_args, **_more):
        ran.append("made")

    def __setstate__(self, state):
        ran.append("filled")

    def __reduce__(self):
        return ran.append, ("unpickled",)


@pytest.fixture
def path(tmp_path):
    mercer.save(mercer.RBF(2.0), tmp_path / "k.mercer")
    return tmp_path / "k.mercer"


def refused(path, match, error=DamagedFile):
    with pytest.raises(error, match=match) as e:
        mercer.load(path)
    said = str(e.value)
    assert "\n" not in said
    assert said.endswith(".")
    assert e.value.__cause__ is None
    assert e.value.__suppress_context__ or e.value.__context__ is None


def rewritten(path, **changes):
    """Change the manifest and sign it again, as a hostile program would."""
    manifest, arrays = container.read(path)
    manifest.update(changes)
    container.write(path, manifest, arrays)


# -- writing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError, MemoryError])
def test_an_interruption_leaves_the_old_file(path, monkeypatch, interruption):
    before = path.read_bytes()

    def half(arrays, file, metadata):
        Path(file).write_bytes(before[:100])
        raise interruption("now")

    monkeypatch.setattr(container, "save_file", half)
    with pytest.raises(interruption):
        mercer.save(mercer.RBF(3.0), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["k.mercer"]


def test_a_failed_rename_leaves_the_old_file(path, monkeypatch):
    def fail(*_):
        raise PermissionError("no")

    monkeypatch.setattr(container.os, "replace", fail)
    with pytest.raises(PermissionError):
        mercer.save(mercer.RBF(3.0), path)
    assert os.listdir(path.parent) == ["k.mercer"]
    assert mercer.load(path) == mercer.RBF(2.0)


PROGRAM = """
import sys, numpy as np, mercer
models = [mercer.Precomputed(np.full((600, 600), float(i))) for i in range(2)]
mercer.save(models[0], sys.argv[1])
print("ready", flush=True)
while True:
    for model in models:
        mercer.save(model, sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_process_leaves_a_whole_file(tmp_path):
    path = tmp_path / "m.mercer"
    for wait in (0.0, 0.03):
        with subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(wait)
            process.kill()
        found = mercer.load(path)
        assert found.matrix.min() == found.matrix.max() in (0.0, 1.0)


@pytest.mark.skipif(os.name != "posix", reason="needs limits on files")
def test_a_full_disk_is_an_error_that_leaves_the_old_file(path):
    program = (
        "import resource, sys, numpy as np, mercer\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    mercer.save(mercer.Precomputed(np.eye(300)), sys.argv[1])\n"
        "except OSError as e:\n"
        "    print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "could not be written" in done.stdout
    assert os.listdir(path.parent) == ["k.mercer"]
    assert mercer.load(path) == mercer.RBF(2.0)


def test_permissions_and_links_are_those_of_an_ordinary_file(path, tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    link = tmp_path / "link.mercer"
    link.symlink_to(path)
    mercer.save(mercer.RBF(5.0), link)
    assert link.is_symlink()
    assert mercer.load(path) == mercer.RBF(5.0)


def test_where_nothing_can_be_written(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a folder; name a file in it"):
        mercer.save(mercer.RBF(), tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*nowhere' to write 'm\.mercer' into; make it"):
        mercer.save(mercer.RBF(), tmp_path / "nowhere" / "m.mercer")


def test_other_programs_can_read_the_arrays(tmp_path):
    model = mercer.KernelRidge(kernel="rbf").fit(np.eye(4), np.arange(4.0))
    mercer.save(model, str(tmp_path / "m.mercer"))
    with safe_open(tmp_path / "m.mercer", framework="numpy") as file:
        assert np.array_equal(file.get_tensor("dual_coef_"), model.dual_coef_)
        manifest = json.loads(file.metadata()["manifest"])
    assert manifest["mercer"] == mercer.__version__
    assert manifest["objects"][0]["class"] == "mercer.KernelRidge"
    assert manifest["objects"][0]["parameters"]["kernel"] == "rbf"


def test_a_model_of_too_many_parts_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "HEADER", 1000)
    with pytest.raises(ValueError, match=r"too many small parts .* a header of .* Keep its points in arrays"):
        mercer.save([["a", 1.0, None]] * 200, tmp_path / "m.mercer")


def test_a_thousand_classes_fit_into_the_manifest(tmp_path):
    parts = [mercer.Certificate(1.0, 0.5 + i, 0.0, 1e-3, "SMO", i) for i in range(20_000)]
    history = [[(1, 2.0), (3, 4.0)][: i % 3] for i in range(20_000)]
    mercer.save([parts, history], tmp_path / "m.mercer")
    assert len(container.read(tmp_path / "m.mercer")[0]["model"]) == 2
    with safe_open(tmp_path / "m.mercer", framework="numpy") as file:
        assert len(file.metadata()["manifest"]) < 30 * 20_000
    assert mercer.load(tmp_path / "m.mercer") == [parts, history]


# -- foreign files ----------------------------------------------------------------------------------------


def test_files_of_other_kinds(tmp_path):
    path = tmp_path / "x.mercer"
    path.write_bytes(b"")
    refused(path, r"x\.mercer' is damaged: it has 0 bytes, and a model file has hundreds")
    path.write_bytes(pickle.dumps(Canary.__new__(Canary)))
    refused(path, "is no model file of mercer but a pickle, which is never opened here")
    path.write_bytes(gzip.compress(b"x" * 100))
    refused(path, "but compressed by gzip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    refused(path, "but a zip archive")
    np.save(path.with_suffix(".npy"), np.eye(3))
    refused(path.with_suffix(".npy"), "but an array of NumPy")
    path.write_text("a,b\n1,2\n" * 20)
    refused(path, "is damaged, or no model file of mercer")
    save_file({"a": np.eye(2)}, path)
    refused(path, "is a file of safetensors, but holds no model of mercer")
    refused(tmp_path, "is no file; a model file is one that mercer.save has written")
    with pytest.raises(FileNotFoundError, match=r"nothing\.mercer"):
        mercer.load(tmp_path / "nothing.mercer")
    assert not ran


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
def test_a_device_is_no_model_file():
    refused("/dev/zero", "is no file")


# -- damaged and hostile files ----------------------------------------------------------------------------


def test_every_flipped_bit_of_the_data_is_noticed(tmp_path):
    path = tmp_path / "m.mercer"
    mercer.save(mercer.Precomputed(np.eye(3)), path)
    whole = path.read_bytes()
    for place in range(len(whole) - 72, len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        refused(path, "its contents do not match their digest")


def test_newer_and_strange_versions(path):
    metadata = {"format": "mercer.model", "version": "3", "manifest": "{}", "sha256": ""}
    save_file({}, path, metadata)
    refused(path, "was written by a newer mercer, in version 3 of the format, and this one reads up to 2", NewerFile)
    save_file({}, path, metadata | {"version": "-1"})
    refused(path, r"its format has the version '-1', which is no number")


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "subprocess.Popen",
        "test_container.Canary",
        f"{__name__}.Canary",
        "Canary",
        "mercer.io.registry.register",
        "mercer.estimators.import_module",
        "mercer.SVC.fit",
        "mercer.estimators.__name__",
        "mercer.losses.Loss.__subclasses__",
        "sklearn.preprocessing.StandardScaler.__init__",
        "../../etc/passwd",
        "",
        ".",
    ],
)
def test_no_class_of_a_file_is_made(path, name):
    ran.clear()
    rewritten(path, model={"object": 0}, objects=[{"class": name, "arguments": {"a": "touch /tmp/x"}}])
    refused(path, r"names the class .* which is not registered here", mercer.io.NotRegistered)
    rewritten(path, model={"function": name})
    refused(path, r"names the function .* which is not registered here", mercer.io.NotRegistered)
    rewritten(path, model={"object": 0}, objects=[{"kernel": name, "parameters": {}}])
    refused(path, r"names the kernel .* which is not registered here", mercer.io.NotRegistered)
    rewritten(path, model={"type": name})
    refused(path, "damaged")
    assert not ran


SVC = "mercer.SVC"
CSR = {
    "sparse": "csr_array",
    "shape": [2, 2],
    "data": {"array": "v"},
    "indices": {"array": "at"},
    "indptr": {"array": "at"},
}


@pytest.mark.parametrize(
    ("model", "objects"),
    [
        ({"object": 7}, []),
        ({"object": True}, [None]),
        ({"object": 0}, [{"class": SVC, "parameters": {"surprise": 1}, "state": {}}]),
        ({"object": 0}, [{"class": SVC, "parameters": {}, "state": {"predict": 1}}]),
        ({"object": 0}, [{"class": SVC, "parameters": {}, "state": {"__class__": 1}}]),
        ({"object": 0}, [{"class": SVC, "parameters": {}, "state": {"certificate_": 1}}]),
        ({"object": 0}, [{"class": SVC, "parameters": {}, "state": {"kernel_": 1}}]),
        ({"object": 0}, [{"class": SVC, "parameters": {}, "state": {"n_features_in_": -1}}]),
        ({"object": 0}, [{"class": SVC, "parameters": {}, "state": {"shape_fit_": [3]}}]),
        ({"object": 0}, [{"class": SVC, "parameters": {}, "state": {"dual_coef_": {"array": "nan"}}}]),
        ({"object": 0}, [{"class": SVC, "parameters": [], "state": {}}]),
        ({"object": 0}, [{"class": SVC, "parameters": {"kernel": {"object": 0}}, "state": {}}]),
        ({"object": 0}, [{"class": "mercer.losses.Huber", "arguments": {"delta": -1.0}}]),
        ({"object": 0}, [{"class": "mercer.losses.Huber", "arguments": {"delta": {"object": 0}}}]),
        ({"object": 0}, [{"kernel": "RBF", "parameters": {"scale": {"value": {"object": 0}}}}]),
        ({"object": 0}, [{"kernel": "RBF", "parameters": {"scale": -1.0}}]),
        ({"object": 0}, [{"kernel": "Precomputed", "parameters": {"matrix": {"array": "nan"}}}]),
        ({"array": "nothing"}, []),
        ({"array": "nan", "dtype": "<U3"}, []),
        ({"array": "big", "dtype": "<U1"}, []),
        ({"number": ["float64", [1]]}, []),
        ({"dtype": "f8,i4"}, []),
        ({"empty": "<U9", "shape": [2, 3]}, []),
        ({"empty": "<U9", "shape": [0, 10**30]}, []),
        ({"objects": [1, 2], "shape": [10**9]}, []),
        ({"texts": "letters"}, []),
        ({"jagged": "lengths", "entries": [1, 2]}, []),
        ({"numbers": "nan"}, []),
        ({"columns": [[1], [1, 2]]}, []),
        ({"columns": [[1]], "class": SVC, "arguments": ["C"]}, []),
        ({**CSR, "indices": {"array": "far"}}, []),
        ({**CSR, "indptr": {"array": "lengths"}}, []),
        ({**CSR, "shape": [2, -2]}, []),
        ({"sparse": "lil_array", "shape": [2, 2]}, []),
        ({"random": "Generator", "state": {"dict": [["bit_generator", "Evil"]]}}, []),
        ({"dict": [[[1], 2]]}, []),
        ({"slice": [1]}, []),
        ({"unheard": "of"}, []),
        ({"table": {"kind": "table", "library": "os", "columns": []}}, []),
    ],
    ids=range(39),
)  # fmt: skip
def test_what_mercer_would_not_write_is_refused(path, model, objects):
    arrays = {
        "nan": np.full((2, 2), np.nan),
        "big": np.full((3, 1), 2**31, np.uint32),
        "v": np.ones(2),
        "at": np.array([0, 1]),
        "far": np.array([0, 2**40]),
        "letters": np.frombuffer(b"abc", np.uint8),
        "letters.lengths": np.array([1, 7]),
        "lengths": np.array([-1, 3]),
    }
    manifest = {"mercer": "0.1.0", "scikit-learn": "1.9", "model": model, "facts": None, "objects": objects, "same": {}}
    container.write(path, manifest, arrays)
    refused(path, "is damaged, or was changed or written by other code: ")


def test_nesting_without_end(path):
    deep = "[" * 100_000 + "]" * 100_000
    text = '{"model":' + deep + "}"
    save_file(
        {}, path, {"format": "mercer.model", "version": "1", "manifest": text, "sha256": container._digest(1, text, {})}
    )
    refused(path, "its manifest is not JSON as mercer writes it")
    nested = {"tuple": []}
    for _ in range(450):
        nested = {"tuple": [nested]}
    mercer.save(mercer.RBF(1.0), path)
    rewritten(path, model=nested)
    refused(path, "lists within lists without end, and a model file holds at most 400")


def test_claims_of_enormous_sizes(path):
    header = {"a": {"dtype": "F64", "shape": [2**40, 2**10], "data_offsets": [0, 2**53]}}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 64)
    refused(path, "is damaged, or no model file of mercer")
    path.write_bytes((2**62).to_bytes(8, "little") + text)
    refused(path, "is damaged, or no model file of mercer")
    save_file({"a": np.zeros((0, 5))}, path, {"format": "mercer.model", "version": "1", "manifest": "{}"})
    whole = path.read_bytes().replace(b"[0,5]", b"[0,999999999999]")
    size = int.from_bytes(whole[:8], "little") + 11
    path.write_bytes(size.to_bytes(8, "little") + whole[8:])
    refused(path, r"of shape \(0, 999999999999\), which holds nothing but has")
