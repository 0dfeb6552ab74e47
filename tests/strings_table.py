"""A table whose target is told by a number, by words of a text and by a motif in DNA."""

import numpy as np
import pandas as pd

WORDS = [
    "the",
    "a",
    "kernel",
    "is",
    "similarity",
    "score",
    "and",
    "learner",
    "never",
    "needs",
    "to",
    "see",
    "coordinates",
    "of",
    "points",
    "in",
    "space",
]


def notes(n=160, seed=0):
    """Return the table, its labels and a real target."""
    rng = np.random.default_rng(seed)
    good = rng.random(n) < 0.5
    texts = [" ".join(rng.permutation([*rng.choice(WORDS, 6), "margin" if g else "noise"])) for g in good]
    motif = rng.random(n) < 0.5
    bases = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(n)]
    bases = [s[:9] + ("TATAATGC" if m else "") + s[9:] for s, m in zip(bases, motif, strict=True)]
    table = pd.DataFrame({"age": rng.uniform(20, 70, n), "note": texts, "gene": bases, "user": np.arange(n)})
    table["user"] = [f"u{i}" for i in range(n)]
    return table, np.where(good, "keep", "drop"), motif + 0.02 * table["age"].to_numpy()
