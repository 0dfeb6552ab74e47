import pytest

from mercer import RBF, Linear, Sigmoid, plots


def steps(proof):
    return 1 + sum(map(steps, proof.parts))


def test_every_step_is_there_below_the_one_it_is_part_of():
    proof = (RBF(1.0) * Linear() ** 2 + 3.0 * Linear()).proof()
    display = plots.ProofDisplay.from_kernel(proof)
    assert len(display.claims_) == len(display.reasons_) == steps(proof)
    for depth, above, step in display.steps[1:]:
        assert step in display.steps[above][2].parts
        assert depth == display.steps[above][0] + 1
    heights = [text.get_position()[1] for text in display.claims_]
    assert heights == sorted(heights)


def test_gaps_are_said_in_words_and_shapes():
    display = plots.ProofDisplay.from_kernel(Sigmoid() + RBF(1.0))
    assert display.ax_.get_title(loc="left") == "positive semidefinite: unproven"
    assert [text.get_text().endswith("refuted") for text in display.claims_] == [False, True, False]
    markers = [line.get_marker() for line in display.ax_.lines if line.get_marker() != "None"]
    assert markers == ["o", "X", "o"]


def test_of_a_long_proof_the_beginning_is_drawn():
    kernel = Linear()
    for scale in range(1, 50):
        kernel = kernel + RBF(float(scale))
    proof = kernel.proof()
    display = plots.ProofDisplay.from_kernel(proof)
    assert len(display.claims_) + display.left_out == steps(proof)
    assert display.ax_.texts[-1].get_text() == f"… and {display.left_out} more steps"


def test_a_kernel_is_asked_for():
    with pytest.raises(TypeError, match="3 is neither a kernel nor a proof"):
        plots.proof(3)
