"""
A mixed table: numbers, categories, texts and DNA in one kernel
===============================================================

Each column has a kernel that suits it. Sums and products put them together (K3), one machine learns from the whole
table, and `auto` finds such a kernel by itself (M14). Sets and rankings are columns like others (K10).
"""

# %%
# K10. A kernel for each column
# -----------------------------
# Patients of a made clinic: age and weight, a job, a note, and a piece of DNA. Some weights and jobs are missing. The
# risk has to do with all of them but the weight.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_score

from mercer import RBF, SVC, Categorical, GappedKmers, Kendall, Tanimoto, TextNGrams, auto
from mercer.plots.style import BLUE, INK, MUTED, RED, house

rng = np.random.default_rng(6)
n = 240
age = rng.uniform(20, 80, n).round()
job = rng.choice(["baker", "clerk", "smith"], n)
bad, mutant = rng.random(n) < 0.5, rng.random(n) < 0.5
ill = ["short of breath", "coughs at night", "wheezes on stairs", "tight chest", "breathes hard at night"]
well = ["sleeps well at night", "walks every day", "takes the stairs", "breathes well", "feels fine"]
rest = ["seen twice", "first visit", "came by bus", "works too much", "asks for a letter", "likes tea", "moved here"]
note = [f"{rng.choice(ill if b else well)}, {rng.choice(rest)}, {rng.choice(rest)}" for b in bad]
dna = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(n)]
dna = [
    s[:at] + "GATTACA" + s[at + 7 :] if m else s for s, m, at in zip(dna, mutant, rng.integers(0, 23, n), strict=True)
]
dusty = np.where(job == "clerk", -1.0, 1.0) * (age - 50) / 15  # age is a risk to bakers and smiths only
y = np.where(dusty + 2 * bad + 2 * mutant - 2 + rng.normal(0, 0.3, n) > 0, "high", "low")
table = pd.DataFrame({"age": age, "weight": rng.normal(75, 9, n).round(), "job": job, "note": note, "dna": dna})
table["weight"], table["job"] = table["weight"].mask(rng.random(n) < 0.1), table["job"].mask(rng.random(n) < 0.1)
print(f"K10 {n} patients, {table['job'].isna().sum()} without a job, {table['weight'].isna().sum()} without a weight")
print(f"K10 the first: {table.loc[0].to_dict()}")

# %%
# K3. Products and sums
# ---------------------
# A product asks for both: patients are alike if age and job are. A sum takes either: notes and DNA have their own
# say. A job that is not known is a category of its own. The proof is the tree of these rules.
person = RBF(15.0).on("age") * Categorical(other=0.1).on("job")
words, strands = TextNGrams((1, 1)).on("note"), GappedKmers(length=7, gaps=1).normalized().on("dna")
kernel = person + words + strands
print(f"K3  {kernel.proof()}")
scores = {}
for name, k in {"age × job": person, "note": words, "DNA": strands, "age × job + note + DNA": kernel}.items():
    scores[name] = cross_val_score(SVC(C=3.0, kernel=k), table, y)
    print(f"K3  {name}: accuracy {scores[name].mean():.1%}")

# %%
# M14. The same by itself
# -----------------------
# `auto` looks at the columns, marks what is missing, proposes kernels for numbers, categories, prose and DNA,
# compares them by cross-validation and gives an account. It is not told that the weight is noise.
model = auto(table, y, cv=3)
for column in model.encoder_.treatment_:
    print(f"M14 {column.said}")
print(f"M14 {model.account_}")
print(f"M14 {model.kernel_!r}: {model.kernel_.proof().status}; accuracy {model.honest_score_:.1%}")

# %%
# K10. Sets and rankings
# ----------------------
# Tanimoto is the share of what two sets have in common, Kendall the share of pairs of items that two rankings put in
# the same order, minus the others. Both are kernels and can stand beside those above.
pills = [{"aspirin", "zinc"}, {"aspirin", "iron", "zinc"}, {"iron"}]
print(f"K10 sets of pills:\nK10 {Tanimoto()(pills).round(2).tolist()}")
wishes = [[1, 2, 3, 4], [2, 1, 3, 4], [4, 3, 2, 1]]  # ranks of tea, coffee, milk, water
print(f"K10 rankings of drinks:\nK10 {Kendall()(wishes).round(2).tolist()}")
lists = pd.DataFrame({"pills": pills, "age": [30.0, 40.0, 50.0]})
print(f"K10 with the age: {(Tanimoto().on('pills') * RBF(15.0).on('age'))(lists).round(2).tolist()}")

# %%
# M10. What the machine has learned
# ---------------------------------
# One patient with a bad note and no mutation, whose age and job are varied. Age is a risk to smiths and a comfort to
# clerks.
machine = SVC(C=3.0, kernel=kernel).fit(table, y == "high")
ages, someone = np.arange(20, 81), int(np.flatnonzero(bad & ~mutant)[0])
curves = {}
for name in ("smith", "clerk", None):
    curves[name] = machine.decision_function(table.loc[[someone] * len(ages)].assign(age=ages, job=name))
    print(f"M10 {name or 'not known'}: decision {curves[name][0]:+.2f} at 20, {curves[name][-1]:+.2f} at 80")

with house():
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for row, (name, folds) in enumerate({**scores, "auto": model.honest_score_}.items()):
        left.plot(folds, np.full(np.size(folds), row), "o", color=MUTED, ms=4, mew=0)
        left.plot(np.mean(folds), row, "D", color=RED if name == "auto" else BLUE, ms=9)
    left.set(yticks=range(5), yticklabels=[*scores, "auto"], ylim=(4.5, -0.5), xlabel="accuracy")
    left.set_title("Columns alone, and together")
    for (name, values), colour, line in zip(curves.items(), (RED, BLUE, MUTED), ("-", "--", ":"), strict=True):
        right.plot(ages, values, color=colour, ls=line, lw=2, label=name or "job not known")
    right.axhline(0, color=INK, lw=1)
    right.set(xlabel="age", ylabel="decision: above 0, high risk")
    right.set_title("One patient, other ages and jobs")
    right.legend(loc="best")
