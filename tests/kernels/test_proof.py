import json

import numpy as np

from cases import each
from mercer.kernels import (
    RBF,
    EditSimilarity,
    FromDissimilarity,
    FromFunction,
    GlobalAlignment,
    Kernel,
    Linear,
    Precomputed,
    Proof,
    Sigmoid,
    SmithWaterman,
    kernel,
)
from samples import CATALOGUE

KNOWN = {"inner product", "feature map", "Bochner", "Schoenberg", "pull-back", "limit"}
KNOWN |= {"convolution", "alignments"}  # of strings and time series
UNPROVEN = FromDissimilarity | FromFunction | Precomputed | SmithWaterman | EditSimilarity


@each("sample", CATALOGUE, ids=str)
def test_every_kernel_of_the_catalogue_has_a_reason_or_owns_that_it_has_none(sample):
    proof = sample.kernel.proof()
    assert proof.parts == ()
    aligned = isinstance(sample.kernel, GlobalAlignment)
    if isinstance(sample.kernel, UNPROVEN) or (aligned and not sample.kernel.divisible):
        assert proof.status == "unproven"
    elif isinstance(sample.kernel, Sigmoid):
        assert proof.status == "refuted"
    else:
        assert proof.status == "proven"
        assert proof.rule in KNOWN
        assert len(proof.reason) > 20


def test_a_composite_is_proven_by_its_parts():
    proof = ((2.0 * RBF(1.0) + Linear()) * RBF(2.0).exp()).proof()
    assert proof.proven
    assert proof.rule == "product"
    assert [part.rule for part in proof.parts] == ["sum", "limit"]
    assert proof.parts[0].parts[0].rule == "non-negative multiple"
    assert proof.gaps() == []


@each(
    "build",
    [
        lambda k: k + RBF(1.0),
        lambda k: RBF(1.0) * k,
        lambda k: 2.0 * k,
        lambda k: k**2,
        lambda k: k.exp(),
        lambda k: k.geometric(),
        lambda k: k.normalized(),
        lambda k: k.on([0]),
        lambda k: k.rescaled(len),
        lambda k: k.compose(len),
    ],
)
@each("weak", [FromFunction(max), Sigmoid(1.0), Precomputed(np.eye(2))], ids=["f", "tanh", "matrix"])
def test_one_unproven_part_leaves_the_whole_unproven(build, weak):
    proof = build(weak).proof()
    assert proof.status == "unproven"
    assert [gap.claim for gap in proof.gaps()] == [repr(weak)]


def test_refuted_is_only_what_has_its_own_counterexample():
    assert Sigmoid(1.0).proof().status == "refuted"
    assert (Sigmoid(1.0) + Linear()).proof().status == "unproven"


def test_printed_as_a_tree():
    text = str((RBF(1.0) + 2.0 * Linear()).proof())
    lines = text.splitlines()
    assert lines[0] == "RBF(scale=1.0) + 2.0 * Linear()  [proven]"
    assert lines[2].startswith("|-- RBF(scale=1.0)  [proven]")
    assert any(line.startswith("`-- 2.0 * Linear()") for line in lines)
    assert any(line.startswith("    `-- Linear()") for line in lines)


def test_exported_as_json():
    proof = (RBF(1.0) * FromFunction(max)).proof()
    tree = json.loads(proof.to_json())
    assert tree == proof.to_dict()
    assert tree["status"] == "unproven"
    assert [part["status"] for part in tree["parts"]] == ["proven", "unproven"]
    assert set(tree) == {"claim", "status", "rule", "reason", "parts"}


def test_a_class_without_a_reason_is_unproven():
    @kernel
    class Mine(Kernel):
        def of(self, pair):
            return pair.dot

    assert Mine().proof() == Proof(
        Mine(), "none given", "the class states no reason; verdict(k, X) tests it on points.", own="unproven"
    )
