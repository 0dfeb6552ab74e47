"""Strings of every kind, and kernels of strings in a few obvious lines of Python."""

from math import comb

from hypothesis import strategies as st

ALPHABETS = st.sampled_from(["ACGT", "ab", "aé😀", "ACGTN", "".join(map(chr, range(32, 400)))])
TEXTS = ALPHABETS.flatmap(lambda a: st.lists(st.text(a, max_size=12), min_size=1, max_size=6))
BYTES = st.lists(st.binary(max_size=8).map(lambda b: bytes(c % 3 + 250 for c in b)), min_size=1, max_size=6)
TOKENS = st.lists(
    st.lists(st.sampled_from(["to", "be", 3, 2.5, None, ("a", 1), b"x"]), max_size=8), min_size=1, max_size=6
)
STRINGS = TEXTS | BYTES | TOKENS
DNA = st.lists(st.text("ACGT", max_size=40), min_size=1, max_size=12)


def substrings(x, k):
    """The k-mers of a string, as tuples."""
    return [tuple(x[i : i + k]) for i in range(len(x) - k + 1)]


def spectrum(x, z, k):
    return float(sum(a == b for a in substrings(x, k) for b in substrings(z, k)))


def differing(a, b):
    return sum(p != q for p, q in zip(a, b, strict=True))


def gapped(x, z, g, m):
    return float(sum(comb(g - differing(a, b), g - m) for a in substrings(x, g) for b in substrings(z, g)))
