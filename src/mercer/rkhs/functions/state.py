"""Functions as plain data: a manifest in JSON, and arrays by name."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy import sparse

from mercer.kernels import Kernel, kernel_from_state
from mercer.kernels.state import write_kernel
from mercer.points.state import Arrays, damaged, read_points, write_points

_VERSION = 1


def write(function: Any, coefficients: Any, more: dict[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """Return the manifest and the arrays of a function or of a vector of functions."""
    arrays: Arrays = {}
    manifest = {
        "format": f"mercer.{type(function).__name__}",
        "version": _VERSION,
        "kernel": write_kernel(function.kernel, "kernel", arrays),
        "points": write_points(function.points, "points", arrays),
        "coefficients": write_points(coefficients, "coefficients", arrays),
        **more,
    }
    return manifest, arrays


def read(cls: type, manifest: Any, arrays: Arrays) -> tuple[Kernel, Any, Any]:
    """Return kernel, points and coefficients, after checking that the manifest is one of this class."""
    expected = f"mercer.{cls.__name__}"
    seen = manifest.get("format") if isinstance(manifest, dict) else manifest
    if seen != expected:
        raise damaged(f"its format should be {expected!r}", seen)
    if manifest.get("version") != _VERSION:
        raise ValueError(
            f"the state is of version {manifest.get('version')!r}, and this mercer reads version {_VERSION}; read it "
            "with the mercer that wrote it."
        )
    missing = {"kernel", "points", "coefficients"} - set(manifest)
    if missing:
        raise damaged("it needs a kernel, points and coefficients", f"one without {', '.join(sorted(missing))}")
    kernel = kernel_from_state(manifest["kernel"], arrays)
    coefficients = read_points(manifest["coefficients"], arrays)
    if not sparse.issparse(coefficients) and np.asarray(coefficients).dtype.kind not in "fiub":
        raise damaged("coefficients are numbers", manifest["coefficients"])
    return kernel, read_points(manifest["points"], arrays), coefficients


def number(manifest: dict[str, Any], key: str) -> float:
    """Return a number of the manifest."""
    value = manifest.get(key)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise damaged(f"its {key} is a number", value)
    return float(value)
