"""A program that damages model files in many ways, loads them and prints how each attempt ended, as JSON.

python mutations.py FOLDER COUNT SEED. It limits its own memory and the time of each attempt, and watches for what
loading should never do: start a program, open a connection, unpickle, compile, write a file.
"""

import copy
import json
import random
import resource
import signal
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import mercer
import models
from mercer.io import container, registry

NAMES = ["SVC of names", "KernelRidge of two", "SVC, sparse", "LinearSVC", "GaussianProcessRegressor", "KernelDensity"]
NAMES += ["KernelPCA with preimages", "pipeline", "SVC of words", "KernelCCA", "SVR of a table", "Pegasos, kernel"]
NEW = ["search of SVC", "search of KernelRidge by two scores", "AutoClassifier", "AutoRegressor", "TableEncoder"]
NEW += ["table model", "MercerFeatures", "SVC, kernel chosen", "KernelMixture"]
JUNK = [None, True, 0, -1, 2**70, 10**15, 1e308, "", "x", "__import__('os').system('true')", [], {}, [[]], "../../x"]
JUNK += [{"object": 0}, {"object": -1}, {"array": "X_fit_"}, {"float": "nan"}, {"float": "-inf"}, {"tuple": [1, 2]}]
JUNK += [{"class": "os.system", "arguments": {}}, {"kernel": "RBF", "parameters": {}}, {"type": "object"}]
JUNK += [{"kernels": "RBF"}, {"scorer": {"dict": [["name", "r2"]]}}, {"masked": {"array": "X_fit_"}, "mask": None}]
JUNK += [{"law": {"scipy.stats": "os", "parameters": {}}}, {"function": "sklearn.metrics.r2_score"}]
JUNK += [{"number": ["<f8", 1]}, {"dict": [["a", 1]]}, {"texts": "classes_"}, {"slice": [0, 10**18, 1]}, "similarities"]
SPOILED = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "socket.", "pickle.find_class")
SPOILED += ("exec", "compile", "import", "ctypes.dlopen", "shutil.", "os.remove", "os.rename", "urllib.Request")


class TooLong(BaseException):
    """An attempt that took more than its time."""


def nodes(tree, path=()):
    """Yield the places of a tree of JSON."""
    yield path
    if isinstance(tree, dict | list):
        for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
            yield from nodes(tree[key], (*path, key))


def edited(manifest, rng):
    """Return a manifest with one to three places changed."""
    tree = json.loads(json.dumps(manifest))
    for _ in range(rng.randint(1, 3)):
        places = [p for p in nodes(tree) if p]
        *above, last = rng.choice(places)
        holder = tree
        for key in above:
            holder = holder[key]
        action = rng.randrange(5)
        if action == 0:
            del holder[last]
        elif action == 1:
            other = tree
            for key in rng.choice(places):
                other = (
                    other[key]
                    if isinstance(other, dict | list) and (isinstance(other, dict) or key < len(other))
                    else other
                )
                if not isinstance(other, dict | list):
                    break
            holder[last] = json.loads(json.dumps(other))
        elif action == 2 and isinstance(holder, dict):
            holder[rng.choice(["predict", "__class__", "kernel_", "x", "class"])] = holder.pop(last)
        else:
            holder[last] = copy.deepcopy(rng.choice(JUNK))
    return tree


def spoiled(arrays, rng):
    """Return the arrays with one of them changed, or one that nobody asks for where there are none."""
    arrays = dict(arrays) or {"stray": np.ones(3)}
    name = rng.choice(sorted(arrays))
    a = arrays[name]
    action = rng.randrange(7)
    if action == 0:
        del arrays[name]
    elif action == 1:
        arrays[name] = np.full(a.shape, np.nan)
    elif action == 2:
        arrays[name] = a.reshape(-1)[: a.size // 2].copy()
    elif action == 3:
        arrays[name] = np.full(a.shape, rng.choice([-1, 2**31 - 1, 2**62]), dtype=np.int64)
    elif action == 4:
        arrays[name] = a.astype(np.float16 if a.dtype.kind == "f" else np.int8)
    elif action == 5:
        arrays[name] = np.zeros((0, 3))
    else:
        arrays[name] = np.ascontiguousarray(a.T if a.ndim == 2 else np.repeat(a, 3))
    return arrays


def damaged(whole, rng):
    """Return bytes like those of a file that a disk, a network or an editor has touched."""
    data = bytearray(whole)
    header = 8 + int.from_bytes(whole[:8], "little")
    action = rng.randrange(6)
    if action == 0:
        return bytes(data[: rng.randrange(len(data))])
    if action == 1:
        start = rng.randrange(len(data))
        del data[start : start + rng.randint(1, 64)]
    elif action == 2:
        data[rng.randrange(len(data)) : 0] = rng.randbytes(rng.randint(1, 64))
    elif action == 3:
        data[: rng.randint(1, 8)] = rng.randbytes(rng.randint(1, 8))
    else:
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(header if action == 4 else len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def main(folder, count, seed):
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    originals = []
    for name in NAMES + NEW:
        case, model = models.fitted(name)
        path = folder / f"{len(originals)}.mercer"
        mercer.save(model, path)
        repr(models.answers(mercer.load(path), case.X) and model)  # what is imported late is there now
        originals.append((path.read_bytes(), *container.read(path), case))
    for module in registry._LIBRARY:
        __import__(module)
    limit = 2 * 2**30 + int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    events, watching = [], [False]

    def audit(event, arguments):
        if watching[0] and event.startswith(SPOILED):
            events.append(f"{event} {arguments!r:.60}")

    def out_of_time(*_):
        raise TooLong

    sys.addaudithook(audit)
    signal.signal(signal.SIGALRM, out_of_time)
    ends, strange = Counter(), []
    path = folder / "m.mercer"
    for _ in range(count):
        whole, manifest, arrays, case = rng.choice(originals)
        how = rng.choice(["bytes", "manifest", "manifest", "arrays"])
        if how == "bytes":
            path.write_bytes(damaged(whole, rng))
        elif how == "manifest":
            container.write(path, edited(manifest, rng), arrays)
        else:
            container.write(path, manifest, spoiled(arrays, rng))
        signal.alarm(20)
        watching[0] = True
        try:
            found = mercer.load(path)
            ends[f"{how}: loaded"] += 1
        except (mercer.io.DamagedFile, mercer.io.NotRegistered, mercer.io.NewerFile) as error:
            said = str(error)
            ends[f"{how}: refused"] += 1
            if "\n" in said or not said.endswith(".") or len(said) > 600:
                strange.append(said)
            continue
        except BaseException as error:
            strange.append(f"{how}: {error!r:.300}")
            continue
        finally:
            watching[0] = False
            signal.alarm(0)
        signal.alarm(20)
        try:
            models.answers(found, case.X)
        except TooLong:
            ends["used: too long"] += 1
        except Exception as error:
            ends[f"used: {type(error).__name__}"] += 1
        finally:
            signal.alarm(0)
    sys.stdout.write(json.dumps({"ends": ends, "strange": strange, "events": sorted(set(events))}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
