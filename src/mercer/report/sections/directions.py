"""The plane of the two directions along which a classifier tells most: its boundary as one sees it best."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.report.drawing.clock import Clock
from mercer.report.drawing.scales import quantiles, span
from mercer.report.drawing.words import clip
from mercer.report.machine import Machine
from mercer.report.sections.importance import groups
from mercer.report.sections.plane import Plane, grid_for

_NAMED = 2  # columns in the name of a direction
_PROBES = 300  # differences from which the directions are taken, at least
_STEP = 0.5  # how far they reach, in standard deviations
_WEAK = 1e-2  # a second direction with less of a gradient than this share of the first tells nothing


def leading(machine: Machine, S: np.ndarray, rows: Any, probes: int, rng: np.random.Generator) -> np.ndarray:
    """Return two orthonormal directions (2, columns): those along which the log odds of the classes change most.

    They are the leading singular directions of the mean gradient, which is fitted to differences over about half a
    standard deviation. Two classes have one; the other is then the widest spread of the rows across it.

    Parameters
    ----------
    S
        Rows, each column in units of its deviation.
    rows
        Turns such rows into encoded ones.
    probes
        How many differences to look at.
    """
    at = S[rng.integers(len(S), size=probes)]
    steps = _STEP * rng.standard_normal(at.shape)
    change = _odds(machine.values(rows(at + steps))) - _odds(machine.values(rows(at - steps)))
    gradient = np.linalg.lstsq(steps, change, rcond=1e-3)[0]
    ways, size, _ = np.linalg.svd(gradient, full_matrices=False)
    first, second = ways[:, 0] * (np.sign(gradient[:, -1] @ ways[:, 0]) or 1.0), ways[:, 1]  # the last class is right
    if len(machine.classes) == 2 or size[1] < _WEAK * size[0]:
        across = S - np.outer(S @ first, first)
        second = np.linalg.svd(across, full_matrices=False)[2][0]
    return np.stack([first, second])


def _odds(chances: np.ndarray) -> np.ndarray:
    logs = np.log(np.clip(chances, 1e-6, 1.0))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def directions_plane(
    machine: Machine, Z: np.ndarray, y: np.ndarray, clock: Clock, each: float, rng: np.random.Generator
) -> Plane | None:
    """Return the plane of the two leading directions of encoded rows; None if they have fewer than two columns.

    At each place the prediction is the average over some rows moved there, each at its own distance from the plane.
    """
    if Z.shape[1] < 2 or Z.dtype == object:  # strings have no directions
        return None
    middle, unit = Z.mean(axis=0), Z.std(axis=0)
    unit[unit == 0] = 1.0
    S = (Z - middle) / unit

    def rows(moved: np.ndarray) -> np.ndarray:
        return moved * unit + middle

    ways = leading(machine, S, rows, max(_PROBES, 4 * Z.shape[1]), rng)
    points = S @ ways.T
    places, background = grid_for(clock, each)
    background = 1 if Z.shape[1] == 2 else min(background, len(Z))
    ends = [span(quantiles(column, [0.01, 0.99]), 0.06) for column in points.T]
    axes = (np.linspace(*ends[0], places), np.linspace(*ends[1], places))
    on = np.column_stack([g.ravel() for g in np.meshgrid(*axes)]) @ ways
    rest = S[rng.permutation(len(S))[:background]]
    rest = rest - rest @ ways.T @ ways
    found = np.asarray(sum(machine.values(rows(on + off)) for off in rest) / background)
    names = tuple(_name(way, machine) for way in ways)
    shape = (places, places, -1)
    return Plane((names[0], names[1]), axes, found.reshape(shape), points, y, background if Z.shape[1] > 2 else 0)


def _name(way: np.ndarray, machine: Machine) -> str:
    """Return the columns of the table that a direction is made of most."""
    sizes = {name: float(np.linalg.norm(way[at])) for name, at in groups(machine.model.encoder_).items()}
    most = sorted(sizes, key=lambda name: -sizes[name])
    more = ", …" if len(most) > _NAMED else ""
    return "direction of " + ", ".join(clip(name, 22) for name in most[:_NAMED]) + more
