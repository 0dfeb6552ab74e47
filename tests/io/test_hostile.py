"""Files that somebody has changed on purpose, digest and all: each is refused in a sentence that says what is wrong."""

import copy

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.io import DamagedFile, NotRegistered, container
from mercer.tables import TableEncoder
from models import fitted


@pytest.fixture
def file(tmp_path):
    return tmp_path / "m.mercer"


def parts(name, file):
    """Return manifest and arrays of a model's file."""
    mercer.save(fitted(name)[1], file)
    manifest, arrays = container.read(file)
    return copy.deepcopy(manifest), arrays


def record(manifest, cls):
    """Return the record of the first object of a class."""
    return next(r for r in manifest["objects"] if r.get("class", "").endswith(f".{cls}"))


def put(code, key, value):
    """Change an entry of a dictionary."""
    pair = next(pair for pair in code["dict"] if pair[0] == key)
    pair[1] = value


def refused(file, manifest, arrays, match, error=DamagedFile):
    container.write(file, manifest, arrays)
    with pytest.raises(error, match=match) as caught:
        mercer.load(file)
    said = str(caught.value)
    assert said.endswith(".")
    assert "\n" not in said


NAN = {"float": "nan"}


# -- tables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "key", "value", "match"),
    [
        ("width", "spread", NAN, "spread of column 'width' is a number that serves"),
        ("width", "spread", 0.0, "spread of column 'width' is a number that serves"),
        ("width", "median", {"float": "inf"}, "median of column 'width' is a number"),
        ("width", "centre", "3", "centre of column 'width' is a number"),
        ("width", "made", ["width"], "column 'width' became as many as its kind makes"),
        ("width", "kind", "code", "the kind of column 'width' is a known one"),
        ("width", "missing", 1, "known whether cells of column 'width' were missing"),
        ("price", "shape", "exec", "numbers of column 'price' have a shape"),
        ("price", "unit", -1.0, "unit of column 'price' is a number that serves"),
        ("price", "name", None, "a column has a name and a sentence"),
        ("price", "said", ["x"], "a column has a name and a sentence"),
        ("hue", "kept", [1, 2, 3], "categories of column 'hue' are texts"),
        ("hue", "kept", ["red"] * 40, "column 'hue' became as many as its kind makes"),
        ("hue", "rare", [1], "categories of column 'hue' are texts"),
        ("hue", "scale", True, "scale of column 'hue' is a number that serves"),
        ("day", "parts", ["century"], "parts of column 'day' are time, season"),
        ("day", "format", 7, "the format of column 'day' is a text"),
        ("country", "made", ["country"], "column 'country' was dropped and became nothing"),
    ],
)
def test_columns_of_a_table(file, column, key, value, match):
    manifest, arrays = parts("TableEncoder", file)
    columns = record(manifest, "TableEncoder")["state"]["columns_"]
    put(next(c for c in columns if ["name", column] in c["dict"]), key, value)
    refused(file, manifest, arrays, match)


@pytest.mark.parametrize("levels", [["S"], ["S", "S"], [1, 2], "SM", None])
def test_levels_of_an_ordered_category(file, levels):
    table = pd.DataFrame({"size": pd.Categorical(["S", "M", "L"], ["S", "M", "L"], ordered=True)})
    mercer.save(TableEncoder().fit(table), file)
    np.testing.assert_array_equal(mercer.load(file).transform(table), TableEncoder().fit_transform(table))
    manifest, arrays = container.read(file)
    manifest = copy.deepcopy(manifest)
    put(record(manifest, "TableEncoder")["state"]["columns_"][0], "levels", levels)
    refused(file, manifest, arrays, "levels of column 'size' are different texts")


def test_an_encoder_without_columns(file):
    for columns in ([], "x", [1], {"dict": []}):
        manifest, arrays = parts("TableEncoder", file)
        record(manifest, "TableEncoder")["state"]["columns_"] = columns
        refused(file, manifest, arrays, "columns_ of TableEncoder is a list of dictionaries")


# -- searches ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("best_index_", 10**6, "best_index_ of KernelSearchCV is below 24"),
        ("best_index_", -1, "best_index_ of KernelSearchCV is below 24"),
        ("best_estimator_", "rm -r", "best_estimator_ of KernelSearchCV is an estimator"),
        ("cv_results_", [], "cv_results_ of KernelSearchCV is a table with params"),
        ("cv_results_", {"dict": [["params", [1]]]}, "params of KernelSearchCV are dictionaries"),
        (
            "cv_results_",
            {"dict": [["params", [{"dict": []}]], ["rank_test_score", []]]},
            "rank_test_score of KernelSearchCV has 1 entries",
        ),
        ("classes_", [1], "'classes_' is no attribute that a fit of mercer.KernelSearchCV sets"),
        ("predict", 1, "'predict' is no attribute that a fit"),
    ],
)
def test_results_of_a_search(file, key, value, match):
    manifest, arrays = parts("search of SVC", file)
    record(manifest, "KernelSearchCV")["state"][key] = value
    refused(file, manifest, arrays, match)


@pytest.mark.parametrize("name", ["os", "Kernel", "RBF.__init__", "../RBF", ""])
def test_classes_of_kernels_that_nobody_registered(file, name):
    manifest, arrays = parts("search of SVC", file)
    record(manifest, "KernelSearchCV")["parameters"]["kernels"] = [{"kernels": name}]
    refused(file, manifest, arrays, "names the kernel .* which is not registered here", NotRegistered)


@pytest.mark.parametrize(
    ("plain", "error"),
    [
        ([["name", "os.system"]], DamagedFile),
        ([["name", ["r2"]]], DamagedFile),
        ([["estimator", 3]], DamagedFile),
        ([[1, 2]], DamagedFile),
        (
            [["function", {"function": "os.system"}], ["sign", 1], ["more", {"dict": []}], ["response", "x"]],
            NotRegistered,
        ),
        (
            [
                ["function", {"function": "sklearn.metrics.r2_score"}],
                ["sign", 1],
                ["more", {"dict": []}],
                ["response", "__reduce__"],
            ],
            DamagedFile,
        ),
        ([["function", "eval"], ["sign", 1], ["more", {"dict": []}], ["response", "predict"]], DamagedFile),
        ([["name", "r2"], ["asks", [1]]], DamagedFile),
    ],
    ids=range(8),
)
def test_scorers(file, plain, error):
    manifest, arrays = parts("search of SVC", file)
    record(manifest, "KernelSearchCV")["state"]["scorer_"] = {"scorer": {"dict": plain}}
    refused(file, manifest, arrays, "cannot be loaded|is damaged", error)


@pytest.mark.parametrize("name", ["os.system", "sklearn.metrics.os", "sklearn.metrics.__import__", "sklearn.os"])
def test_functions_that_are_no_metrics(file, name):
    manifest, arrays = parts("search of SVC", file)
    record(manifest, "KernelSearchCV")["parameters"]["scoring"] = {"function": name}
    refused(file, manifest, arrays, "names the function .* which is not registered here", NotRegistered)


@pytest.mark.parametrize("mask", [None, {"array": "lies"}, {"array": "numbers"}])
def test_masks_that_do_not_fit(file, mask):
    manifest, arrays = parts("search of SVC", file)
    manifest["model"] = {"masked": {"array": "values"}, "mask": mask}
    arrays = {"values": np.ones(3), "lies": np.ones(2, bool), "numbers": np.ones(3)}
    manifest["same"] = {}
    refused(file, manifest, arrays, "is nothing that mercer writes")


# -- expansions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("eigenvalues", {"array": "nan"}, "eigenvalues are numbers above 0"),
        ("eigenvalues", {"array": "minus"}, "eigenvalues are numbers above 0"),
        ("eigenvalues", {"array": "few"}, "each eigenvalue has an error"),
        ("errors", {"array": "nan"}, "each eigenvalue has an error"),
        ("vectors", {"array": "few"}, "vectors have their shape"),
        ("weights", {"array": "few"}, "each node has a weight"),
        ("trace", NAN, "the trace is a number above 0"),
        ("how", 3, "said in words"),
        ("eigenfunctions", 3, "is damaged"),
        ("measure", {"law": {"scipy.stats": "os", "parameters": {}}}, "a law is one of"),
        (
            "measure",
            {"law": {"scipy.stats": "norm", "parameters": {"loc": "x"}, "more": 1}},
            "a law with its parameters",
        ),
        ("measure", {"law": ["norm"]}, "a law has a name and parameters"),
        ("measure", 3.5, "is damaged"),
    ],
    ids=range(13),
)
def test_parts_of_an_expansion(file, key, value, match):
    manifest, arrays = parts("MercerFeatures", file)
    record(manifest, "MercerExpansion")["arguments"][key] = value
    arrays |= {"nan": np.full(8, np.nan), "minus": -np.ones(8), "few": np.ones(2)}
    refused(file, manifest, arrays, match)


def test_an_expansion_is_made_of_its_parts_alone(file):
    manifest, arrays = parts("MercerFeatures", file)
    record(manifest, "MercerExpansion")["arguments"]["rank"] = 3
    refused(file, manifest, arrays, "mercer.MercerExpansion is made with measure, given")


# -- models chosen automatically --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "key", "value", "match"),
    [
        ("AutoClassifier", "calibration_", 3, "calibration_ of AutoClassifier has a rising map for each of 1 pairs"),
        (
            "AutoClassifier",
            "calibration_",
            {"dict": [["slope", {"array": "nan"}], ["offset", {"array": "one"}]]},
            "calibration_ of AutoClassifier has a rising map",
        ),
        (
            "AutoClassifier",
            "calibration_",
            {"dict": [["slope", {"array": "minus"}], ["offset", {"array": "one"}]]},
            "calibration_ of AutoClassifier has a rising map",
        ),
        (
            "SVC, probabilities",
            "calibration_",
            {"dict": [["slope", {"array": "one"}], ["offset", {"array": "one"}]]},
            "calibration_ of SVC has a rising map for each of 3 pairs",
        ),
        (
            "SVC, probabilities",
            "calibration_",
            {"dict": [[key, {"array": "three"}] for key in ("slope", "offset", "power")]},
            "the power of SVC is a number above 0",
        ),
        ("AutoClassifier", "classes_", {"array": "one"}, "classes_ of AutoClassifier is a vector in ascending order"),
        ("AutoClassifier", "encoder_", None, "encoder_ of AutoClassifier is a fitted encoder"),
        ("AutoClassifier", "estimator_", "x", "estimator_ of AutoClassifier is an estimator"),
        ("AutoClassifier", "account_", "x", "account_ of AutoClassifier consists of sentences and facts"),
        (
            "AutoClassifier",
            "results_",
            {"dict": [["a", [1]], ["b", []]]},
            "results_ of AutoClassifier has columns of one",
        ),
        ("AutoClassifier", "certificate_", 1, "'certificate_' is no attribute that a fit"),
        ("AutoRegressor", "residuals_", {"array": "nan"}, "residuals_ of AutoRegressor are numbers"),
        ("AutoRegressor", "residuals_", {"array": "falling"}, "residuals_ of AutoRegressor are in ascending order"),
        ("AutoRegressor", "residuals_", [], "residuals_ of AutoRegressor are numbers"),
        (
            "AutoRegressor",
            "residual_counts_",
            {"array": "one"},
            "residual_counts_ of AutoRegressor are numbers above 0",
        ),
        (
            "AutoRegressor",
            "residual_counts_",
            {"array": "nan"},
            "residual_counts_ of AutoRegressor are numbers above 0",
        ),
        (
            "AutoRegressor",
            "residual_rows_",
            {"array": "one"},
            "residual_rows_ and residual_folds_ of AutoRegressor are",
        ),
        ("AutoRegressor", "residual_rows_", {"array": "far"}, "residual_rows_ of AutoRegressor are among the"),
        ("AutoRegressor", "residual_folds_", {"array": "before"}, "residual_rows_ and residual_folds_ of Auto"),
        ("AutoRegressor", "target_range_", {"array": "one"}, "target_range_ of AutoRegressor is two numbers"),
        ("AutoRegressor", "target_scale_", "exp", "target_scale_ of AutoRegressor is 'identity' or 'log'"),
    ],
    ids=range(21),
)
def test_what_an_automatic_model_knows(file, name, key, value, match):
    manifest, arrays = parts(name, file)
    record(manifest, name.partition(",")[0])["state"][key] = value
    arrays |= {"nan": np.full(1, np.nan), "minus": -np.ones(1), "one": np.ones(1), "falling": np.array([2.0, 1.0])}
    arrays["three"] = np.ones(3)
    arrays |= {"far": np.full(48, 48), "before": np.full(48, -1)}  # of as many rows as AutoRegressor has seen
    refused(file, manifest, arrays, match)


@pytest.mark.parametrize("check", [{"function": "sklearn.metrics.r2_score"}, 3, {"object": 0}])
def test_a_certificate_is_checked_by_its_model_alone(file, check):
    manifest, arrays = parts("KernelMixture", file)
    record(manifest, "Certificate")["arguments"]["check"] = check
    refused(file, manifest, arrays, "a certificate is checked by its model|is made of itself")


def test_places_on_the_reader_s_machine_are_not_taken_from_a_file(file):
    manifest, arrays = parts("table model", file)
    record(manifest, "SVC")["parameters"]["checkpoint"] = "../../etc/passwd"
    record(manifest, "Pipeline")["parameters"]["memory"] = "/root/.ssh"
    container.write(file, manifest, arrays)
    found = mercer.load(file)
    assert found.memory is None
    assert found[-1].checkpoint is None


def test_nesting_within_a_model(file):
    manifest, arrays = parts("table model", file)
    deep = []
    for _ in range(250):
        deep = {"dict": [["a", deep]]}
    record(manifest, "TableEncoder")["state"]["columns_"] = deep
    refused(file, manifest, arrays, "is damaged")


def test_lengths_that_lie(file):
    manifest, arrays = parts("search of SVC", file)
    record(manifest, "KernelSearchCV")["parameters"]["kernels"] = {"jagged": "lengths", "entries": [1]}
    for lengths in ([2**62, 2**62], [-1, 2], [1, 1]):
        refused(file, manifest, {**arrays, "lengths": np.array(lengths)}, "do not add up to the 1 that are there")
    record(manifest, "KernelSearchCV")["parameters"]["kernels"] = {"objects": [1], "shape": [2**40, 2**40]}
    refused(file, manifest, arrays, "is nothing that mercer writes")
