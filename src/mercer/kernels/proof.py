"""Proofs that a kernel is positive semidefinite, as trees from closure rules down to axioms."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["proven", "unproven", "refuted"]


@dataclass(frozen=True)
class Proof:
    """One step of an argument that a kernel is positive semidefinite.

    Parameters
    ----------
    kernel
        The kernel the step is about.
    rule
        The name of the axiom (at a leaf) or of the closure rule.
    reason
        The argument in a sentence.
    parts
        The proofs of the kernels that the rule builds on.
    own
        What the step itself establishes, given its parts. `status` combines both.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> print((Linear() ** 2).proof())
    Linear() ** 2  [proven]
    |   product: the elementwise product of positive semidefinite matrices is one (Schur), repeated 2 times.
    `-- Linear()  [proven]
            inner product: k(x, z) = <x, z> is the inner product itself; the feature map is the identity.
    """

    kernel: Any
    rule: str
    reason: str
    parts: tuple[Proof, ...] = ()
    own: Status = "proven"

    @property
    def claim(self) -> str:
        """The kernel as its `repr`."""
        return repr(self.kernel)

    @property
    def status(self) -> Status:
        """'proven' if this step and all its parts are; 'refuted' only by the step's own counterexample."""
        if self.own != "proven":
            return self.own
        return "proven" if all(part.status == "proven" for part in self.parts) else "unproven"

    @property
    def proven(self) -> bool:
        """Whether the whole tree stands."""
        return self.status == "proven"

    def gaps(self) -> list[Proof]:
        """Return the leaves on which the proof fails."""
        own = [self] if self.own != "proven" else []
        return own + [gap for part in self.parts for gap in part.gaps()]

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as plain dictionaries and lists."""
        return {
            "claim": self.claim,
            "status": self.status,
            "rule": self.rule,
            "reason": self.reason,
            "parts": [part.to_dict() for part in self.parts],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the tree as JSON."""
        return json.dumps(self.to_dict(), indent=indent)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        lines = [f"{self.claim}  [{self.status}]"]
        lines.append(("|   " if self.parts else "        ") + f"{self.rule}: {self.reason}")
        for i, part in enumerate(self.parts):
            last = i == len(self.parts) - 1
            first, *rest = part._lines()
            lines.append(("`-- " if last else "|-- ") + first)
            lines.extend(("    " if last else "|   ") + line for line in rest)
        return lines
