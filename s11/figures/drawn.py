"""A plain spec in the form that Streamlit draws without checking it again at every change."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
from plotly.basedatatypes import BaseFigure

from s11.figures.theme import Spec

TYPED_ARRAYS = {"f4", "f8", "i1", "i2", "i4", "u1", "u2", "u4"}  # those that a browser has


class Drawn(BaseFigure):  # type: ignore[misc]
    """A figure that hands its spec over as it is.

    Streamlit builds and validates graph objects from a dict, 13 ms for the timeline at every
    change; from a figure it only asks `to_dict`. The tests validate every figure instead.
    Arrays go as base64, which a browser reads without parsing numbers.
    """

    def __init__(self, spec: Spec) -> None:
        object.__setattr__(self, "_s11_spec", _with_typed_arrays(spec))

    def to_dict(self) -> Spec:
        """Return the spec."""
        spec: Spec = object.__getattribute__(self, "_s11_spec")
        return spec


def plotly_js() -> tuple[Path, str]:
    """Return where the installed package keeps plotly.js, and a file name with its version."""
    import plotly

    source = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    return source, f"plotly-{plotly.__version__}.min.js"


def as_json(spec: Spec) -> str:
    """Return a spec as JSON for plotly.js: arrays as base64, NaN as null."""
    import plotly.io

    return str(plotly.io.to_json(_with_typed_arrays(spec), validate=False))


def _with_typed_arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_typed_arrays(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_typed_arrays(item) for item in value]
    if isinstance(value, np.ndarray):
        code = f"{value.dtype.kind}{value.dtype.itemsize}"
        if code not in TYPED_ARRAYS:
            return value.tolist()
        data = np.ascontiguousarray(value, dtype=f"<{code}").tobytes()
        shape = {"shape": ", ".join(map(str, value.shape))} if value.ndim > 1 else {}
        return {"dtype": code, "bdata": base64.b64encode(data).decode("ascii"), **shape}
    return value
