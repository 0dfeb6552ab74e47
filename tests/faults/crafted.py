"""A program that loads files made to exhaust or to mislead the loader, and prints what each took, as JSON.

python crafted.py FOLDER. Each file is loaded in a process of its own, which also uses whatever loads.
"""

import copy
import json
import os
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import mercer
import models
from mercer.io import container

FILES = {}
MANIFEST = {"mercer": "0.1.0", "scikit-learn": "1.9", "facts": None, "objects": [], "same": {}}
LAW = {"scipy.stats": "norm", "parameters": {}}
PIPELINE = "sklearn.pipeline.Pipeline"


def crafted(function):
    """Add a file: the function returns its manifest, or manifest and arrays, or its bytes, or None if it wrote it."""
    FILES[function.__name__.replace("_", " ")] = function
    return function


def forge(path, manifest, arrays=None):
    """Write a file as mercer would, whatever is in it."""
    text = manifest if isinstance(manifest, str) else json.dumps(MANIFEST | manifest, separators=(",", ":"))
    arrays = arrays or {}
    metadata = {"format": "mercer.model", "version": "1", "manifest": text}
    metadata["sha256"] = container._digest(1, text, arrays)
    container.save_file(arrays, path, metadata)


def raw(header, data=b""):
    """Return the bytes of a file with a header of one's own."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def declared(**arrays):
    """Return a header that declares arrays, beside the metadata of a model."""
    text = json.dumps(MANIFEST | {"model": None})
    metadata = {"format": "mercer.model", "version": "1", "manifest": text, "sha256": "0" * 64}
    return {"__metadata__": metadata} | {
        name: {"dtype": "F64", "shape": list(shape), "data_offsets": list(places)}
        for name, (shape, places) in arrays.items()
    }


def kernel(name, **parameters):
    return {"kernel": name, "parameters": parameters}


def part(number):
    return {"value": {"object": number}}


def doubled(name, times, one=None):
    """Return the records of a kernel that is made of the one before, twice, again and again."""
    first = one or kernel("RBF", scale=1.0)
    return [first, *(kernel(name, left=part(i), right=part(i)) for i in range(times))]


def model_of(case, change):
    """Return manifest and arrays of a model, changed in place."""
    path = Path(sys.argv[1]) / "sound.mercer"
    mercer.save(models.fitted(case)[1], path)
    manifest, arrays = container.read(path)
    manifest, arrays = copy.deepcopy(manifest), dict(arrays)
    change(manifest["objects"][0].get("state", {}), arrays)
    return manifest, arrays


# -- much from little -------------------------------------------------------------------------------------


@crafted
def a_normal_law_in_16000_dimensions():
    law = {"scipy.stats": "multivariate_normal", "parameters": {"mean": {"array": "m"}, "cov": 1.0}}
    return {"model": {"law": law}}, {"m": np.zeros(16_000)}


@crafted
def a_student_law_in_16000_dimensions():
    given = {"loc": {"array": "m"}, "shape": 1.0, "df": 3.0}
    return {"model": {"law": {"scipy.stats": "multivariate_t", "parameters": given}}}, {"m": np.zeros(16_000)}


@crafted
def a_normal_law_with_a_matrix_of_1500():
    given = {"mean": {"array": "m"}, "cov": {"array": "c"}}
    arrays = {"m": np.zeros(1500), "c": np.eye(1500)}
    return {"model": {"law": {"scipy.stats": "multivariate_normal", "parameters": given}}}, arrays


@crafted
def a_spectral_law_in_a_billion_dimensions():
    given = {"dim": 10**9, "scale": 1.0, "mixing": None}
    return {"model": {"law": {"law": "GaussianScaleMixture", "parameters": given}}}


@crafted
def sixty_thousand_laws():
    return {"model": [{"law": LAW}] * 60_000}


@crafted
def sums_that_share_their_parts():
    return {"model": {"object": 40}, "objects": doubled("Sum", 40)}


@crafted
def products_that_share_their_parts():
    return {"model": {"object": 60}, "objects": doubled("Product", 60)}


@crafted
def sums_that_unfold_to_the_limit():
    return {"model": {"object": 11}, "objects": doubled("Sum", 11)}


@crafted
def pipelines_that_share_their_parts():
    scaler = {"class": "sklearn.preprocessing.StandardScaler", "parameters": {}, "state": {}}
    made = [scaler]
    for i in range(35):
        steps = [{"tuple": [name, {"object": i}]} for name in "ab"]
        made.append({"class": PIPELINE, "parameters": {"steps": steps}, "state": {}})
    return {"model": {"object": 35}, "objects": made}


@crafted
def pipelines_that_unfold_to_the_limit():
    manifest = pipelines_that_share_their_parts()
    return {"model": {"object": 5}, "objects": manifest["objects"][:6]}


@crafted
def four_hundred_thousand_empty_arrays():
    entries = b",".join(b'"%d":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}' % i for i in range(400_000))
    return raw(b"{" + entries + b"}")


@crafted
def as_many_arrays_as_a_file_may_hold():
    return {"model": {"array": "1"}}, {str(i): np.zeros(0) for i in range(30_000)}


@crafted
def five_hundred_thousand_references():
    return {"model": [{"object": 0}] * 500_000, "objects": [kernel("RBF", scale=1.0)]}


@crafted
def as_many_references_as_a_file_may_hold():
    return {"model": [{"object": 0}] * 19_000, "objects": [kernel("RBF", scale=1.0)]}


@crafted
def a_million_empty_lists():
    return {"model": [[]] * 1_000_000}


@crafted
def nearly_as_many_values_as_a_file_may_hold():
    return {"model": list(range(1000, 990_000))}


@crafted
def nearly_as_many_dictionaries_as_a_file_may_hold():
    return {"model": [{"float": "inf"}] * 149_000}


@crafted
def a_kernel_of_a_million_terms():
    return {"model": {"object": 0}, "objects": [kernel("RBF", scale=1.0)] * 1_000_000}


@crafted
def a_chain_of_a_hundred_thousand_kernels():
    chain = [kernel("RBF", scale=1.0)]
    chain += [kernel("Scaled", factor=2.0, base=part(i)) for i in range(100_000)]
    return {"model": {"object": 100_000}, "objects": chain}


@crafted
def a_chain_of_ten_thousand_kernels():
    chain = [kernel("RBF", scale=1.0)]
    chain += [kernel("Scaled", factor=2.0, base=part(i)) for i in range(10_000)]
    return {"model": {"object": 10_000}, "objects": chain}


@crafted
def a_chain_of_two_hundred_kernels():
    chain = [kernel("RBF", scale=1.0)]
    chain += [kernel("Sum", left=part(i), right=kernel("RBF", scale=1.0 + i)) for i in range(198)]
    return {"model": {"object": 198}, "objects": chain}


@crafted
def a_list_of_scales_under_many_levels():
    chain = [kernel("RBF", scale=[1.5] * 90_000)]
    chain += [kernel("Scaled", factor=2.0, base=part(i)) for i in range(150)]
    return {"model": {"object": 150}, "objects": chain}


@crafted
def a_constant_to_the_power_of_a_billion():
    return {"model": {"object": 0}, "objects": [kernel("Power", base=kernel("Constant", value=0.5), power=10**9)]}


@crafted
def one_array_as_a_thousand_lists():
    return {"model": [{"numbers": "a"}] * 1000}, {"a": np.zeros(500_000)}


@crafted
def one_array_as_a_thousand_tables():
    table = {"kind": "table", "library": "pandas", "columns": [{"name": "a", "array": "a"}]}
    return {"model": [{"table": table}] * 1000}, {"a": np.zeros(500_000)}


@crafted
def one_array_in_ten_thousand_kernels():
    made = [kernel("Precomputed", matrix={"array": "a"})] * 10_000
    return {"model": [{"object": i} for i in range(10_000)], "objects": made}, {"a": np.eye(500)}


@crafted
def small_numbers_as_a_long_list():
    return {"model": {"numbers": "a"}}, {"a": np.zeros(8_000_000, np.int8)}


@crafted
def two_million_empty_texts():
    return {"model": {"texts": "a"}}, {"a": np.zeros(0, np.uint8), "a.lengths": np.zeros(2_000_000, np.int8)}


@crafted
def a_million_objects_as_columns():
    columns = {"columns": [{"numbers": "a"}], "class": "mercer.losses.Huber", "arguments": ["delta"]}
    return {"model": columns}, {"a": np.ones(1_000_000)}


@crafted
def a_list_repeated_without_end():
    return {"model": {"repeated": None, "times": 10**12}}


@crafted
def an_empty_array_with_long_sides():
    return {"model": {"object": 0}, "objects": [kernel("Precomputed", matrix={"array": "a"})]}, {
        "a": np.zeros((10**8, 0))
    }


@crafted
def a_sparse_matrix_with_many_columns():
    code = {"sparse": "csr_array", "shape": [1, 2**47], "data": {"array": "v"}, "indices": {"array": "i"}}
    return {"model": code | {"indptr": {"array": "p"}}}, {
        "v": np.ones(1),
        "i": np.zeros(1, np.int64),
        "p": np.arange(2),
    }


@crafted
def a_file_of_holes():
    path = Path(sys.argv[1]) / "crafted.mercer"
    start = raw(declared(a=((2**25,), (0, 2**28))))
    path.write_bytes(start)
    os.truncate(path, len(start) + 2**28)


# -- texts ------------------------------------------------------------------------------------------------


@crafted
def a_text_of_fifteen_megabytes():
    return {"model": {"object": 0}, "objects": [{"class": "x" * 15_000_000}]}


@crafted
def one_wide_letter_in_a_long_manifest():
    text = json.dumps(MANIFEST | {"model": "x" * 15_000_000 + "\U0001f600"}, ensure_ascii=False)
    metadata = {"format": "mercer.model", "version": "1", "manifest": text, "sha256": "0"}
    return raw(json.dumps({"__metadata__": metadata}).encode())


@crafted
def surrogates():
    return json.dumps(MANIFEST)[:-1] + ',"model":"\\ud800"}'


@crafted
def a_number_with_a_million_digits():
    return json.dumps(MANIFEST)[:-1] + ',"model":' + "9" * 1_000_000 + "}"


@crafted
def a_number_beyond_floats():
    return {"model": {"object": 0}, "objects": [kernel("RBF", scale=10**400)]}


@crafted
def a_number_that_overflows():
    made = [kernel("RBF", scale="?")]
    return json.dumps(MANIFEST | {"model": {"object": 0}, "objects": made}).replace('"?"', "1e999")


@crafted
def a_key_twice():
    return json.dumps(MANIFEST)[:-1] + ',"model":1,"model":2}'


@crafted
def lists_within_lists():
    return json.dumps(MANIFEST)[:-1] + ',"model":' + "[" * 90_000 + "]" * 90_000 + "}"


@crafted
def dictionaries_within_dictionaries():
    deep = {"dict": []}
    for _ in range(300):
        deep = {"dict": [["a", deep]]}
    return {"model": deep}


@crafted
def nan_in_the_manifest():
    return json.dumps(MANIFEST)[:-1] + ',"model":NaN}'


# -- references -------------------------------------------------------------------------------------------


@crafted
def a_kernel_of_itself():
    return {"model": {"object": 0}, "objects": [kernel("Scaled", factor=2.0, base=part(0))]}


@crafted
def two_kernels_of_each_other():
    made = [kernel("Scaled", factor=2.0, base=part(1)), kernel("Scaled", factor=2.0, base=part(0))]
    return {"model": {"object": 0}, "objects": made}


@crafted
def an_estimator_of_itself():
    state = {"estimator_": {"object": 0}, "classes_": {"array": "a"}}
    record = {"class": "mercer.AutoClassifier", "parameters": {}, "state": state}
    return {"model": {"object": 0}, "objects": [record]}, {"a": np.arange(2)}


@crafted
def an_object_that_is_not_there():
    return {"model": {"object": 10**30}}


# -- sizes ------------------------------------------------------------------------------------------------


@crafted
def arrays_that_overlap():
    return raw(declared(a=((4,), (0, 32)), b=((4,), (16, 48))), bytes(48))


@crafted
def arrays_with_a_gap():
    return raw(declared(a=((4,), (0, 32)), b=((4,), (64, 96))), bytes(96))


@crafted
def an_array_beyond_the_end():
    return raw(declared(a=((2**40,), (0, 2**43))), bytes(64))


@crafted
def an_array_before_the_beginning():
    return raw(declared(a=((-4,), (0, -32))), bytes(64))


@crafted
def an_enormous_header():
    return (2**62).to_bytes(8, "little") + b"{}"


@crafted
def a_header_cut_off():
    return raw(declared(a=((4,), (0, 32))))[:100]


@crafted
def more_bytes_than_declared():
    return raw(declared(a=((4,), (0, 32))), bytes(2**20))


# -- models -----------------------------------------------------------------------------------------------


@crafted
def classes_of_another_number():
    return model_of("SVC", lambda state, arrays: arrays.update(classes_=np.arange(7)))


@crafted
def classes_out_of_order():
    return model_of("SVC", lambda state, arrays: arrays.update(classes_=np.array([9, 5, 2])))


@crafted
def a_negative_number_of_features():
    return model_of("KernelRidge", lambda state, arrays: state.update(n_features_in_=-3))


@crafted
def coefficients_that_are_not_numbers():
    return model_of("KernelRidge", lambda state, arrays: arrays.update(dual_coef_=arrays["dual_coef_"] * np.nan))


@crafted
def coefficients_of_another_type():
    return model_of("SVC", lambda state, arrays: arrays.update(dual_coef_=arrays["dual_coef_"] > 0))


@crafted
def a_support_outside_of_the_samples():
    return model_of("SVC", lambda state, arrays: arrays.update(support_=arrays["support_"] + 10**6))


# -- measuring --------------------------------------------------------------------------------------------


def use(found):
    """Ask what loads for everything that a user asks first, and return whether it was used."""
    repr(found)
    if isinstance(found, mercer.Kernel):
        X = np.random.default_rng(0).normal(size=(4, 3))
        hash(found), found == found, str(found.proof()), found(X)


def attempt(path, out):
    """Load a file and report, as JSON, how it ended and what it took."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    end = "used"
    try:
        use(mercer.load(path))
    except (mercer.io.DamagedFile, mercer.io.NotRegistered, mercer.io.NewerFile) as error:
        end = f"refused: {str(error).split(': ', 1)[-1]:.200}"
    except BaseException as error:
        end = f"failed: {error!r:.200} {traceback.format_exc()[-600:]}"
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    os.write(out, json.dumps([end, memory]).encode())


def main(folder):
    warnings.simplefilter("ignore")
    path, told = folder / "crafted.mercer", {}
    mercer.save(models.fitted("SVC")[1], path)
    use(mercer.load(path))  # what is imported late is there now
    for name, function in FILES.items():
        content = function()
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content is not None:
            forge(path, *(content if isinstance(content, tuple) else (content,)))
        size = path.stat().st_size / 2**20
        del content
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a file that takes longer counts as one that never ends
            attempt(path, write)
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as answer:
            said = answer.read()
        os.waitpid(child, 0)
        told[name] = [*(json.loads(said) if said else ["killed", 0.0]), size]
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
