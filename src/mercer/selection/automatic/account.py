"""The account of an automatic search: what it has seen, tried and chosen, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.kernels import Kernel
from mercer.machine.words import brief, count
from mercer.selection.automatic.candidates import REASONS, Candidate, Look

if TYPE_CHECKING:
    from mercer.selection.automatic.search import Search

_LISTED_FAMILIES = 10  # families that are named one by one, more than there are for a table of numbers
_KERNEL_LETTERS = 200  # of a kernel that are written out: means of three kernels of named columns have some 180


# -- what was tried ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class Trial:
    """A kernel with a price of errors, and its score on each fold (NaN where it was not looked at)."""

    candidate: Candidate
    price: float
    scores: np.ndarray
    seconds: float
    rows: int
    values: np.ndarray | None = None  # of leave-one-out predictions: of each row by the fit without it
    chosen_by: np.ndarray | None = None  # losses on the folds, where the search does not choose by the scores

    @property
    def losses(self) -> np.ndarray:
        """What the search chooses by, on each fold: the least sum."""
        return -self.scores if self.chosen_by is None else self.chosen_by

    @property
    def folds(self) -> int:
        """On how many folds it was scored."""
        return int(np.isfinite(self.scores).sum())

    @property
    def mean(self) -> float:
        """The mean score of these."""
        return float(np.nanmean(self.scores)) if self.folds else float("nan")

    @property
    def error(self) -> float:
        """The standard error of the mean, from the spread over the folds."""
        return spread(self.scores)


def spread(scores: np.ndarray) -> float:
    """Return the standard error of the mean of scores, NaN of fewer than two."""
    scores = scores[np.isfinite(scores)]
    return float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else float("nan")


@dataclass
class Stage:
    """One search: on which rows, with which folds, what was found."""

    rows: np.ndarray
    splits: list[tuple[np.ndarray, np.ndarray]]  # places in rows
    trials: list[Trial]
    prices: np.ndarray
    seconds: float
    interrupted: bool
    plan: str
    chosen: Trial | None = None  # where it is not the one with the best score
    seen: Any = None  # the rows as the kernels of the search have seen them
    kernels: dict[Kernel, Kernel] = field(default_factory=dict)  # and the kernels of such rows, by those of the table

    def folds(self) -> np.ndarray:
        """The number of the fold that each row is held out in."""
        numbers = np.zeros(len(self.rows), dtype=np.int64)
        for number, (_, test) in enumerate(self.splits):
            numbers[test] = number
        return numbers

    def finished(self) -> list[Trial]:
        """The trials that have seen as many folds as any has."""
        most = max((trial.folds for trial in self.trials), default=0)
        return [trial for trial in self.trials if trial.folds == most and most]

    def best(self) -> Trial:
        """The best of them: of equal ones the first family, the largest scale, the lowest price of errors."""
        if self.chosen is not None:
            return self.chosen
        finished = self.finished()
        if not finished:
            raise ValueError("no kernel could be fitted to any fold; the data may have too few rows of some class.")
        order = {family: i for i, family in enumerate(dict.fromkeys(t.candidate.family for t in self.trials))}
        rising = self.prices[-1] > self.prices[0]

        def rank(trial: Trial) -> tuple[float, int, float, float]:
            scale = trial.candidate.scale
            simple = -trial.price if rising else trial.price
            return trial.mean, -order[trial.candidate.family], scale if np.isfinite(scale) else 0.0, simple

        return max(finished, key=rank)

    def champions(self) -> list[Trial]:
        """The best trial of each family, the best family first."""
        best: dict[str, Trial] = {}
        for trial in self.finished():
            rival = best.get(trial.candidate.family)
            if rival is None or trial.mean > rival.mean:
                best[trial.candidate.family] = trial
        winner = self.best()
        best[winner.candidate.family] = winner
        return sorted(best.values(), key=lambda t: (t is not winner, -t.mean))

    def honest_score(self) -> float:
        """What the way of choosing scores: each fold by the trial that would be chosen from the others.

        At most the score of the winner: where it was not chosen by its score, more would be luck.
        """
        finished = self.finished()
        table = np.array([trial.scores for trial in finished])
        losses = np.array([trial.losses for trial in finished])
        known = np.isfinite(table).all(axis=0)
        table, losses = table[:, known], losses[:, known]
        if table.shape[1] < 2:
            return float("nan")
        others = losses.sum(axis=1, keepdims=True) - losses
        honest = float(np.mean([table[int(others[:, k].argmin()), k] for k in range(table.shape[1])]))
        return min(honest, self.best().mean)


# -- the account ------------------------------------------------------------------------------------------


@dataclass
class Account:
    """The account of a search: `str` gives paragraphs to read, `to_dict` the same as plain data.

    Attributes
    ----------
    seen
        What the data look like.
    kernels
        Which kernels were tried, and why.
    tried
        How they were compared.
    chosen
        Why the winner won, and how sure that is.
    model
        What was fitted in the end.
    facts
        The numbers behind it, as plain data.
    """

    seen: str = ""
    kernels: str = ""
    tried: str = ""
    chosen: str = ""
    model: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n\n".join(part for part in (self.seen, self.kernels, self.tried, self.chosen, self.model) if part)

    def to_dict(self) -> dict[str, Any]:
        """Return the paragraphs and the facts as plain data."""
        names = ("seen", "kernels", "tried", "chosen", "model")
        return {**{name: getattr(self, name) for name in names}, "facts": dict(self.facts)}


def told(look: Look, search: Search, stages: list[Stage]) -> Account:
    """Return the account of a search; what is known besides is added to it by the model."""
    return Account(
        seen_sentences(look, search.columns),
        kernel_sentences(stages[0]),
        search_sentences(search, stages),
        choice_sentences(search, stages),
        facts=choice_facts(search, stages),
    )


# -- the paragraphs ---------------------------------------------------------------------------------------


def seen_sentences(look: Look, columns: Sequence[str] = ()) -> str:
    """Say what the data look like; `columns` are the names of theirs, where they have some."""
    strings = f"{count(len(look.strings), 'string')}" if look.strings else ""
    numbers = count(look.columns, "number") if look.columns or not strings else ""
    what = f"{look.rows:,} rows of {' and '.join(part for part in (numbers, strings) if part)}"
    if look.categories:
        what += f", {len(look.categories):,} of which stand for categories"
    said = [f"The data: {what}."]
    if look.strings and len(columns):
        each = ", ".join(f"{columns[place]} ({kind})" for place, kind in look.strings)
        said.append(f"Compared as strings: {each}.")
    if look.units is not None:
        said.append("The columns have very different deviations, so that each is measured in its own.")
    if look.copies:
        said.append(
            f"{count(look.copies, 'row')} {'repeats' if look.copies == 1 else 'repeat'} an earlier one; copies of a "
            "row in other folds make scores look better than they are."
        )
    return " ".join(said)


def kernel_sentences(stage: Stage) -> str:
    """Say which kernels there are in a stage, and why."""
    parts, families = [], _families(stage)
    joined = [family for family in families if f"RBF + {family}" in families and f"RBF x {family}" in families]
    for family, scales in families.items():
        if family not in joined and family.removeprefix("RBF + ").removeprefix("RBF x ") in joined:
            continue  # said below, once for all
        known = sorted(s for s in scales if np.isfinite(s))
        at = f" at {len(known)} scales from {known[0]:g} to {known[-1]:g}" if len(known) > 1 else ""
        why = f" ({REASONS[family]})" if family in REASONS else ""
        parts.append(f"{family}{at}{why}")
    both = ""
    if joined:
        known = sorted(families[f"RBF + {joined[0]}"])
        at = f"{len(known)} scales from {known[0]:g} to {known[-1]:g}" if len(known) > 1 else f"the scale {known[0]:g}"
        both = f" {'The first' if len(joined) == 1 else f'Each of the first {len(joined)}'}, of the strings, is also "
        both += f"tried with RBF of the numbers at {at}: in the mean (RBF + ...) and in a product (RBF x ...)."
    return f"Kernels: {'; '.join(parts)}.{both} Each is positive semidefinite, and proof() says why."


def search_sentences(search: Search, stages: list[Stage]) -> str:
    """Say what was compared, on how many rows."""
    said, whole = (
        [],
        " of whole groups" if search.groups is not None and isinstance(search.cv, int | np.integer) else "",
    )
    for number, stage in enumerate(stages):
        cells = sum(trial.folds for trial in stage.trials)
        kernels = len({trial.candidate.kernel for trial in stage.trials})
        prices = f" and {count(len(stage.prices), 'value')} of {search.price}" if search.price else ""
        which = ("of this list", "of the families that might be the best", "of those")[min(number, 2)]
        left_out = any(trial.values is not None for trial in stage.trials)
        how = f" in {len(stage.splits)} folds{whole}, {cells:,} fits in"
        if left_out:
            how = f", each of which the fit without it predicts (scores are of {len(stage.splits)} parts), in"
        said.append(
            f"{'Then' if number else 'Tried:'} {count(kernels, 'kernel')} {which}{prices} on "
            f"{count(len(stage.rows), 'row')}{how} {stage.seconds:.1f} s"
            + (f" ({_left(stage)} left early as hopeless)" if _left(stage) and not stage.interrupted else "")
            + "."
        )
        lost = _lost(stage, stages[1]) if number == 0 and len(stages) > 1 else []
        if lost:
            each = _each(stage.best(), lost)
            said.append(f"Left there: {each}.")
        if stage.interrupted:
            said.append("The search was ended before its end; what follows is the best so far.")
    return " ".join(said)


def choice_sentences(search: Search, stages: list[Stage]) -> str:
    """Say who won, by how much, and who may be as good."""
    stage, wide = stages[-1], _wide(stages)
    final = stage.best()
    said = [f"Chosen: {described(final, search)}, with {score_text(final, search)}."]
    winner, *others = wide.champions()
    if wide is not stage and others:
        said.append(f"On {len(wide.rows):,} rows the best family was {winner.candidate.family}.")
    near = [t for t in others if winner.mean - t.mean <= spread(winner.scores - t.scores)]
    far = [t for t in others if t not in near]
    same = [t for t in stage.finished() if t is not final and final.mean - t.mean <= final.error]
    if near:
        each = _each(winner, near)
        said.append(f"Not clearly worse, on the same folds: {each}; another sample might choose otherwise.")
    if far:
        each = _each(winner, far)
        said.append(f"Worse by more than the standard error of the difference: {each}.")
    if final.mean < max(t.mean for t in stage.finished()):
        said.append(
            "Others score higher; of few rows mean square errors decide, and errors on rows that a metric was learned "
            "from count for more."
        )
    if same:
        said.append(
            f"{count(len(same), 'other candidate')} of {len(stage.trials):,} "
            f"{'is' if len(same) == 1 else 'are'} within one standard error of the winner."
        )
    simple = [t for t in near if _simplicity(t) < _simplicity(winner)]
    if simple:
        kernel = min(simple, key=_simplicity).candidate.kernel
        said.append(f"The simplest of those not clearly worse is {_brief(search.named(kernel))}.")
    honest = stage.honest_score()
    if len(stage.finished()) > 1 and np.isfinite(honest):
        said.append(
            "The best of many looks better than it is: choosing by the other folds and scoring on the one left out "
            f"gives {honest:.4g}."
        )
    return " ".join(said)


def choice_facts(search: Search, stages: list[Stage]) -> dict[str, Any]:
    """Return the numbers behind the sentences, as plain data."""
    stage, wide = stages[-1], _wide(stages)
    winner, lead = stage.best(), wide.best()
    return {
        "kernel": repr(search.named(winner.candidate.kernel)),
        "family": winner.candidate.family,
        "scale": _number(winner.candidate.scale),
        "price": search.price or "",
        "value": _number(winner.price),
        "scoring": scoring_name(search.scoring),
        "score": _number(winner.mean),
        "error": _number(winner.error),
        "honest_score": _number(stage.honest_score()),
        "families": [
            {
                "family": t.candidate.family,
                "kernel": repr(search.named(t.candidate.kernel)),
                "score": _number(t.mean),
                "behind": _number(lead.mean - t.mean),
                "behind_error": _number(spread(lead.scores - t.scores)),
                "rows": t.rows,
            }
            for t in wide.champions()
        ],
        "stages": [
            {
                "rows": len(s.rows),
                "folds": len(s.splits),
                "candidates": len(s.trials),
                "fits": sum(t.folds for t in s.trials),
                "seconds": round(s.seconds, 3),
                "interrupted": s.interrupted,
                "plan": s.plan,
            }
            for s in stages
        ],
    }


# -- words ------------------------------------------------------------------------------------------------


def described(trial: Trial, search: Search) -> str:
    """A kernel and its price."""
    price = f" with {search.price} = {trial.price:.3g}" if search.price else ""
    return _brief(search.named(trial.candidate.kernel)) + price


def score_text(trial: Trial, search: Search) -> str:
    """A score with its standard error."""
    error = f" ± {trial.error:.2g}" if np.isfinite(trial.error) else ""
    return f"{scoring_name(search.scoring)} {trial.mean:.4g}{error} (standard error over {count(trial.folds, 'fold')})"


def difference(winner: Trial, other: Trial) -> str:
    """By how much a score is behind, with the standard error of the difference on the same folds."""
    error = spread(winner.scores - other.scores)
    return f"behind by {winner.mean - other.mean:.2g}" + (f" ± {error:.1g}" if np.isfinite(error) else "")


def _each(winner: Trial, others: list[Trial]) -> str:
    """Families and by how much they are behind; of many, the best few and how many more there are."""
    said = ", ".join(f"{t.candidate.family} ({difference(winner, t)})" for t in others[:_LISTED_FAMILIES])
    return said + (f" and {len(others) - _LISTED_FAMILIES} more" if len(others) > _LISTED_FAMILIES else "")


def scoring_name(scoring: Any) -> str:
    """The name of a score."""
    if isinstance(scoring, str):
        return scoring
    function = getattr(scoring, "_score_func", scoring)
    return str(getattr(scoring, "name", None) or getattr(function, "__name__", type(function).__name__))


def _brief(kernel: Any) -> str:
    text = brief(repr(kernel))
    return text if len(text) <= _KERNEL_LETTERS else f"{text[: _KERNEL_LETTERS - 20]}... ({len(text):,} letters)"


def _families(stage: Stage) -> dict[str, set[float]]:
    scales: dict[str, set[float]] = {}
    for trial in stage.trials:
        scales.setdefault(trial.candidate.family, set()).add(trial.candidate.scale)
    return scales


def _left(stage: Stage) -> int:
    return sum(0 < trial.folds < len(stage.splits) for trial in stage.trials)


def _wide(stages: list[Stage]) -> Stage:
    """The stage in which families were last compared: the second, where there are three."""
    return stages[min(1, len(stages) - 1)]


def _lost(stage: Stage, after: Stage) -> list[Trial]:
    """The best trials of the families that the next stage does not have."""
    kept = set(_families(after))
    return [trial for trial in stage.champions() if trial.candidate.family not in kept]


def _simplicity(trial: Trial) -> int:
    """The place in the list of families, which begins with the simplest."""
    order = list(REASONS)
    return order.index(trial.candidate.family) if trial.candidate.family in order else len(order)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
