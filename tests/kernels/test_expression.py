"""Kernels from text: what `repr` writes is read back, what is wrong is shown, and nothing is run."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import each
from mercer.kernels import (
    RBF,
    ArcCosine,
    Constant,
    ExpressionError,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    Product,
    RationalQuadratic,
    Scaled,
    SpectralMixture,
    Sum,
    Wendland,
    kernel,
    parse_kernel,
    register_kernel,
)
from samples import SAMPLES

# -- what can be written ----------------------------------------------------------------------------------


@each(
    ("text", "wanted"),
    [
        ("RBF", RBF()),
        ("RBF(2) + Linear()", RBF(2) + Linear()),
        (" 2*RBF ( scale = 1.5 ) \n + 3 ", 2 * RBF(1.5) + 3),
        ("RBF([1, 2.5, 1e-3])", RBF([1.0, 2.5, 0.001])),
        ("RBF((1, .5))", RBF((1, 0.5))),
        ("Polynomial(2, c1=0)", Polynomial(2, 0.0)),
        ("Polynomial(2, c2='auto')", Polynomial(2, c2="auto")),
        ('Matern(nu=2.5, scale="median")', Matern(2.5, "median")),
        ("RBF.from_gamma(0.5)", RBF(1.0)),
        ("RBF.from_sigma2(2).exp()", RBF(1.0).exp()),
        ("Linear() * Linear() ** 2", Product(Linear(), Linear() ** 2)),
        ("2 * 3 * Linear()", Scaled(6.0, Linear())),
        ("2 * (3 * Linear())", Scaled(2.0, Scaled(3.0, Linear()))),
        ("Linear() * 2 ** -1", Scaled(0.5, Linear())),
        ("(1 + 1) / 4 * RBF(-(-2))", Scaled(0.5, RBF(2))),
        ("Linear() / 4", Linear() / 4),
        ("1 + RBF(1)", Constant(1.0) + RBF(1)),
        ("RBF(1) + (RBF(2) + RBF(3))", Sum(RBF(1), Sum(RBF(2), RBF(3)))),
        ("Linear().on('age')", Linear().on("age")),
        ("Linear().on(columns=['a\\'b', \"c\\n\\u00e9\"])", Linear().on(["a'b", "c\né"])),
        ("Linear().on([0, -1]).normalized()", Linear().on([0, -1]).normalized()),
        ("Linear().on(slice(None, 3))", Linear().on(slice(3))),
        ("(0.5 * RBF(1)).geometric()", (0.5 * RBF(1)).geometric()),
        ("Sum(left=RBF(1), right=Linear())", RBF(1) + Linear()),
        ("Precomputed([[2, 1], [1, 2]])", Precomputed([[2, 1], [1, 2]])),
    ],
)
def test_texts_are_read_as_python_would(text, wanted):
    assert parse_kernel(text) == wanted


def is_text(k):
    """Whether the repr of a kernel is an expression: no functions, no laws."""
    parts = k._params().values()
    return all(is_text(v) if isinstance(v, Kernel) else not callable(v) and not hasattr(v, "rvs") for v in parts) and (
        type(k).__name__ not in ("Spectral", "Composed", "Rescaled", "FromFeatures")
    )


@each("sample", [s for s in SAMPLES if is_text(s.kernel)], ids=str)
def test_every_sample_is_read_back(sample):
    assert parse_kernel(repr(sample.kernel)) == sample.kernel


positive = st.floats(1e-300, 1e300)
scales = st.one_of(positive, st.lists(positive, min_size=1, max_size=4), st.sampled_from(["auto", "median"]))
columns = st.one_of(
    st.text(min_size=1), st.integers(-5, 5), st.lists(st.one_of(st.text(), st.integers(-9, 9)), min_size=1, max_size=3)
)
leaves = st.one_of(
    st.builds(RBF, scales),
    st.builds(Laplacian, scales),
    st.builds(Matern, positive, scales),
    st.builds(RationalQuadratic, positive, scales),
    st.builds(Wendland, st.integers(0, 2), scales),
    st.builds(Polynomial, st.integers(1, 9), positive, st.one_of(positive, st.just("auto"))),
    st.builds(Periodic, positive, positive),
    st.builds(Constant, positive),
    st.builds(ArcCosine, st.integers(0, 2)),
    st.just(Linear()),
    st.builds(lambda w, m, s: SpectralMixture([w], [m], [s]), positive, st.floats(-9, 9), positive),
)
composites = st.recursive(
    leaves,
    lambda k: st.one_of(
        st.builds(lambda a, b: a + b, k, k),
        st.builds(lambda a, b: a * b, k, k),
        st.builds(lambda c, a: c * a, positive, k),
        st.builds(lambda a, p: a**p, k, st.integers(1, 1000)),
        st.builds(lambda a: a.exp(), k),
        st.builds(lambda a: a.geometric(), k),
        st.builds(lambda a: a.normalized(), k),
        st.builds(lambda a, c: a.on(c), k, columns),
    ),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(composites)
def test_what_repr_writes_is_read_back(k):
    assert parse_kernel(repr(k)) == k


def test_arrays_come_back_as_equal_lists():
    k = RBF(np.array([1.0, 2.0])) + Linear().on(np.array([0, 2]))
    assert parse_kernel(repr(k)) == k


def test_classes_of_ones_own_are_known_once_registered():
    @kernel
    class Tent(Kernel):
        width: float = 1.0

        def of(self, pair):
            return 1 / (1 + pair.sqdist(self.width))

    with pytest.raises(ExpressionError, match="no kernel is called 'Tent'"):
        parse_kernel("Tent(2)")
    register_kernel(Tent)
    try:
        assert parse_kernel("3 * Tent(width=2)") == 3 * Tent(2)
    finally:
        from mercer.kernels import state

        state._REGISTERED.pop("Tent", None)


# -- what cannot, and where ---------------------------------------------------------------------------------


@each(
    ("text", "place", "sentence"),
    [
        ("", 0, "a kernel is expected"),
        ("RBG(2)", 0, r"no kernel is called 'RBG'; did you mean RBF\?"),
        ("Linear() + matern", 11, r"did you mean Matern\?"),
        ("gaussian(1)", 0, r"did you mean RBF\?"),
        ("Linear() + zzzz()", 11, "no kernel is called 'zzzz'; mercer.kernels lists them"),
        ("RBF(2", 5, r"'\)' is expected here, to close the '\(' at 4"),
        ("RBF(2))", 6, r"an operator \(\+ \* \*\*\) or the end is expected"),
        ("RBF(2) Linear()", 7, "an operator"),
        ("RBF(2) ^ 2", 7, r"powers are written \*\*"),
        ("RBF(2) +", 8, "a kernel or a number is expected where the text ends"),
        ("* RBF(2)", 0, r"a kernel or a number is expected where '\*' stands"),
        ("RBF(scal=2)", 4, r"'scal' is no parameter of RBF, which has scale; did you mean scale\?"),
        ("RBF(2, 3)", 0, "RBF was given 2 parameters; it has scale"),
        ("Matern(1.5, nu=2.5)", 12, "'nu' is given twice"),
        ("Matern(nu=1.5, nu=2.5)", 15, "'nu' is given twice"),
        ("Matern(nu=1.5, 2)", 15, "cannot follow one with a name"),
        ("SpectralMixture([1])", 0, "SpectralMixture needs means"),
        ("Scaled(2, 3)", 0, "base of Scaled must be a kernel; it is 3"),
        ("Linear() + RBF(scale=-1)", 11, "scale of RBF must be > 0"),
        ("RBF('big')", 0, "'auto' or 'median'"),
        ("RBF(1) - Linear()", 7, "k1 - k2 is refused"),
        ("-RBF(1)", 0, "-k is refused"),
        ("-2 * RBF(1)", 3, "a negative multiple"),
        ("RBF(1) ** 0.5", 7, "only whole powers"),
        ("RBF(1) ** RBF(2)", 7, "a kernel cannot be a power"),
        ("2 ** RBF(2)", 2, "a kernel cannot be a power"),
        ("RBF(1) ** 1001", 7, "the power 1001 is above 1000"),
        ("1 / RBF(1)", 2, "a / k is refused"),
        ("RBF(1) / 0", 7, "positive number only"),
        ("RBF(1 / 0)", 6, "1 / 0 is no finite number"),
        ("RBF((-1) ** 0.5)", 9, "is no finite number"),
        ("RBF(1) + 'x'", 7, r"'\+' joins kernels and numbers; one side is 'x'"),
        ("2.5", 0, r"this is 2.5, no kernel; Constant\(c\)"),
        ("[RBF(1)]", 0, "no kernel"),
        ("RBF(1).foo()", 7, r"one of \.exp\(\), .* is expected after the dot"),
        ("RBF(1).normalised()", 7, r"did you mean normalized\?"),
        ("RBF(1).compose(f)", 7, "takes a Python function"),
        ("RBF(1).exp(2)", 7, r"\.exp\(\) takes nothing"),
        ("RBF(1).on()", 7, "takes the columns"),
        ("RBF(1).transformed(2, 3)", 7, "takes a matrix or one factor"),
        ("RBF(1).on([])", 7, "chooses no column"),
        ("RBF(1).exp", 10, r"'\(' is expected after exp"),
        ("(2).exp()", 0, "belongs to a kernel; this is 2"),
        ("FromFunction(len)", 0, "which a text cannot hold"),
        ("Linear.from_gamma(1)", 7, "Linear has no from_gamma"),
        ("RBF(1) + @", 9, "'@' has no meaning"),
        ("RBF('au", 4, "never closed"),
        ("Linear().on('\\q')", 13, r"\\q is no character"),
        ("RBF(1e999)", 4, "outside the range of float64"),
        ("()", 0, "between these brackets"),
        ("Linear().on(slice('a'))", 12, "slice takes one to three"),
        ("-'a'", 0, "a sign belongs in front of a number"),
    ],
)
def test_errors_point_at_the_place(text, place, sentence):
    with pytest.raises(ExpressionError, match=sentence) as caught:
        parse_kernel(text)
    assert caught.value.position == place
    lines = str(caught.value).splitlines()
    assert lines[-2] == "    " + text.replace("\n", " ")
    assert lines[-1].index("^") == 4 + place


def test_a_long_text_is_shown_around_the_place():
    text = " + ".join(["RBF(scale=1.0)"] * 30) + " + RBQ()" + " + Linear()" * 20
    with pytest.raises(ExpressionError, match=r"did you mean RBF\?") as caught:
        parse_kernel(text)
    shown, mark = str(caught.value).splitlines()[-2:]
    assert len(shown) < 140
    assert shown[mark.index("^") :].startswith("RBQ()")
    assert shown.strip().startswith("... ")
    assert shown.endswith(" ...")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("(" * 10_000 + "RBF(1)" + ")" * 10_000, "20,006 characters; at most 20,000"),
        ("(" * 51 + "RBF(1)" + ")" * 51, "nested more than 50 deep"),
        ("[" * 51, "nested more than 50 deep"),
        ("-" * 60 + "1", "nested more than 50 deep"),
        ("RBF(1)" + ".exp()" * 101, "more than 100 kernels and operations"),
        ("+".join(["RBF(1)"] * 60), "more than 100 kernels and operations"),
        ("RBF(" + "9" * 400 + ")", "outside the range"),
        ("RBF(9 ** 9 ** 9 ** 9)", "is above 1000"),
    ],
)
def test_sizes_are_bounded(text, sentence):
    with pytest.raises(ExpressionError, match=sentence):
        parse_kernel(text)


def test_the_largest_text_is_a_kernel_that_works():
    k = parse_kernel("0.01 * RBF(1)" + ".normalized()" * 98)
    assert k(np.zeros((2, 1))).shape == (2, 2)
    assert k.proof().status == "proven"
    assert parse_kernel(repr(k)) == k


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "RBF.__class__",
        "RBF(1).__init__()",
        "RBF(1).resolve()",
        "(lambda: 1)()",
        "open('x')",
        "RBF(scale=__name__)",
        "RBF(scale=[x for x in (1,)])",
        "kernel",
        "Kernel()",
        "Radial(1)",
    ],
)
def test_nothing_but_kernels_can_be_named(text):
    with pytest.raises(ExpressionError):
        parse_kernel(text)


WORDS = ["RBF", "Linear", "Scaled", "slice", *"()[],.+-*/=2", "**", "0.5", "'a'", "scale", "exp", "on", "None", "True"]


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(st.sampled_from(WORDS), max_size=14).map("".join),
    )
)
@example("RBF(scale=True)")
@example("Scaled(None,RBF)")
@example("Precomputed([[1,2],[3]])")
@example("RBF.")
@example("slice")
def test_any_text_is_a_kernel_or_an_error_with_a_place(text):
    try:
        place = 0 if isinstance(parse_kernel(text), Kernel) else -1
    except ExpressionError as error:
        place = error.position
    assert 0 <= place <= len(text)


def test_errors_travel_and_other_things_are_refused():
    with pytest.raises(ExpressionError) as caught:
        parse_kernel("RBF(1) + Q()")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.sentence, again.text, again.position) == (caught.value.sentence, "RBF(1) + Q()", 9)
    with pytest.raises(TypeError, match="parse_kernel takes a text"):
        parse_kernel(RBF(1))
