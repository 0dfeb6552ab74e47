"""A stationary kernel from the law of its frequencies."""

from __future__ import annotations

from typing import Any

from mercer.features.spectral import as_law
from mercer.features.spectral.frozen import describe, fingerprint, is_frozen
from mercer.kernels.base import _shown, kernel
from mercer.kernels.proof import Proof
from mercer.kernels.stationary import Stationary
from mercer.points import Pair


@kernel
class Spectral(Stationary):
    r"""The characteristic function of a law, by Bochner's theorem (K7). Made by `Stationary.from_spectral`.

    .. math:: k(x, z) = \mathbb{E}_w \cos\langle w, x - z \rangle

    Examples
    --------
    >>> from scipy.stats import cauchy
    >>> from mercer.kernels import Laplacian, Spectral
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 0.5]])
    >>> bool(np.allclose(Spectral(cauchy())(X), Laplacian(1.0)(X)))
    True
    """

    law: Any
    dim: int | None = None

    def _validate(self) -> None:
        if not callable(self.law) or type(self.law).__module__.startswith("scipy."):  # a sampler has to wait for points
            as_law(self.law, getattr(self.law, "dim", 1) if self.dim is None else self.dim)

    def of(self, pair: Pair) -> Any:
        return pair.differences(self.spectral_law(pair.width).characteristic)

    def spectral_law(self, dim: int) -> Any:
        if self.dim is not None and dim != self.dim:
            raise ValueError(f"this spectral law is on {self.dim} features; the points have {dim}.")
        return as_law(self.law, dim)

    def _key(self) -> tuple[Any, ...]:
        return fingerprint(self.law) if is_frozen(self.law) else self.law, self.dim

    def __repr__(self) -> str:
        law = describe(self.law) if is_frozen(self.law) else _shown(self.law)
        return f"Spectral(law={law})" if self.dim is None else f"Spectral(law={law}, dim={self.dim!r})"

    def _proof(self) -> Proof:
        return self._axiom("Bochner", f"the characteristic function of {_name(self.law)}.")


def _name(law: Any) -> str:
    if hasattr(law, "name"):
        return f"the law {law.name}"
    dist = getattr(law, "dist", None)
    return f"the law {dist.name}" if dist is not None and hasattr(dist, "name") else "the given law of frequencies"
