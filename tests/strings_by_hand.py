"""Strings of every kind, and kernels of strings in a few obvious lines of Python."""

from itertools import combinations, pairwise, product
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


def mismatch(x, z, k, m, alphabet):
    every = list(product(alphabet, repeat=k))
    near = [[sum(differing(a, c) <= m for a in substrings(y, k)) for c in every] for y in (x, z)]
    return float(sum(p * q for p, q in zip(*near, strict=True)))


def weighted_degree(x, z, degree, shift):
    total = 0.0
    for d in range(1, degree + 1):
        weight = 2 * (degree - d + 1) / (degree * (degree + 1))
        for i, a in enumerate(substrings(x, d)):
            for j, b in enumerate(substrings(z, d)):
                if abs(i - j) <= shift and a == b:
                    total += weight * (1.0 if i == j else 0.5 / (abs(i - j) + 1))
    return total


def subsequence(x, z, n, decay):
    def spans(y):
        return [([y[i] for i in places], places[-1] - places[0] + 1) for places in combinations(range(len(y)), n)]

    return sum(decay ** (p + q) for u, p in spans(x) for v, q in spans(z) if u == v)


def alignments(x, z, score, gap_open, gap_extend):
    """The score of each local alignment: of the empty one, and of all pairs of places that increase in both strings."""
    found = [0.0]
    for size in range(1, min(len(x), len(z)) + 1):
        for left in combinations(range(len(x)), size):
            for right in combinations(range(len(z)), size):
                total = sum(score(x[i], z[j]) for i, j in zip(left, right, strict=True))
                for places in (left, right):
                    for a, b in pairwise(places):
                        if b - a > 1:
                            total -= gap_open + gap_extend * (b - a - 2)
                found.append(total)
    return found


def edits(x, z):
    if not len(x) or not len(z):
        return len(x) + len(z)
    skip = min(edits(x[1:], z), edits(x, z[1:])) + 1
    return min(skip, edits(x[1:], z[1:]) + (x[0] != z[0]))


def all_alignments(x, z, local):
    """The sum over all ways through two series of the products of local values."""
    if len(x) == 0 or len(z) == 0:
        return float(len(x) == len(z) == 0)
    before = all_alignments(x[:-1], z, local) if len(x) > 1 else 0.0
    before += all_alignments(x, z[:-1], local) if len(z) > 1 else 0.0
    return local(x[-1], z[-1]) * (before + all_alignments(x[:-1], z[:-1], local))
