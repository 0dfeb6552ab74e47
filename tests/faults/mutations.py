"""A program that damages model files in many ways, loads and uses them and prints how each attempt ended, as JSON.

python mutations.py FOLDER COUNT SEED. It limits its own memory and the time of each attempt, and watches for what
loading should never do: start a program, open a connection, unpickle, compile, write a file. What loads must answer
as the undamaged model does, or refuse in a sentence of mercer or scikit-learn.
"""

import contextlib
import copy
import json
import os
import random
import resource
import signal
import sys
import traceback
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import mercer
import models
from mercer.io import container, registry

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


def uses(model, X):
    """Return what can be asked of a model, by name."""
    found = {name: partial(_method, model, name, X) for name in models.METHODS}
    found |= {"certificate_": lambda: str(model.certificate_), "repr": lambda: repr(model)}
    found |= {"proof": lambda: str(model.kernel_.proof()), "hash": lambda: hash(model.kernel_)}
    found["deviation"] = lambda: model.predict(X, return_std=True)
    found["quantiles"] = lambda: model.predict_quantiles(X, [0.1, 0.5, 0.9])
    found["adaptive quantiles"] = lambda: model.predict_quantiles(X, [0.1, 0.5, 0.9], adaptive=True)
    return found


def _method(model, name, X):
    return getattr(model, name)(X)


def _fitted(model):
    return not vars(model).keys() <= model.get_params(deep=False).keys()


def said(error):
    """Return whether an error is a sentence that mercer or scikit-learn says on purpose."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = any(f"{os.sep}{library}{os.sep}" in last.filename for library in ("mercer", "sklearn"))
    return ours and "raise " in (last.line or "") and isinstance(error, ValueError | TypeError | AttributeError)


def answering(model, X):
    """Return the names of what a sound model answers."""
    found = set()
    for name, use in uses(model, X).items():
        with contextlib.suppress(Exception):
            use()
            found.add(name)
    return found


def main(folder, count, seed):
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    originals = []
    for case in models.CASES:
        path = folder / f"{len(originals)}.mercer"
        mercer.save(models.fitted(case.name)[1], path)
        asked = answering(mercer.load(path), case.X)  # what is imported late is there now
        originals.append((path.read_bytes(), *container.read(path), case, asked))
    for module in registry._LIBRARY:
        __import__(module)
    limit = 2 * 2**30 + int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    events, watching = [], [False]

    def audit(event, arguments):
        scipy_law = event in ("exec", "compile") and "scipy" in sys._getframe(1).f_code.co_filename
        if watching[0] and event.startswith(SPOILED) and not scipy_law:
            events.append(f"{event} {arguments!r:.60}")

    def out_of_time(*_):
        raise TooLong

    sys.addaudithook(audit)
    signal.signal(signal.SIGALRM, out_of_time)
    ends, strange, failed, refused = Counter(), [], Counter(), Counter()
    path = folder / "m.mercer"
    for _ in range(count):
        whole, manifest, arrays, case, asked = rng.choice(originals)
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
            sentence = str(error)
            ends[f"{how}: refused"] += 1
            if "\n" in sentence or not sentence.endswith(".") or len(sentence) > 600:
                strange.append(sentence)
            continue
        except BaseException as error:
            strange.append(f"{how}: {error!r:.300}")
            continue
        finally:
            watching[0] = False
            signal.alarm(0)
        sound = models.fitted(case.name)[1]
        if type(found) is not type(sound) or (_fitted(sound) and not _fitted(found)):
            ends["another object, or none that was fitted"] += 1
            continue
        failures = []
        signal.alarm(20)
        try:
            for name in asked:
                try:
                    uses(found, case.X)[name]()
                except Exception as error:
                    sentence = f"{case.name}: {name}: {type(error).__name__}: {' '.join(str(error).split()):.120}"
                    (refused.update([sentence]) if said(error) else failures.append(sentence))
        except TooLong:
            failures.append(f"{case.name}: takes too long")
        finally:
            signal.alarm(0)
        ends["failed"] += bool(failures)
        failed.update(failures)
    told = {"ends": ends, "strange": strange, "events": sorted(set(events)), "failed": failed, "refused": refused}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
