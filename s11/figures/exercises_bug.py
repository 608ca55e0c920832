"""|ΔK| of a bug that is to be found: the mask page's picture without the bug's name."""

from __future__ import annotations

from s11.figures.key_difference import key_difference_figure
from s11.figures.key_difference_info import KeyDifferenceInfo
from s11.figures.theme import Spec, layout


def case_title(case: str) -> str:
    """Return the picture's title, which gives nothing away."""
    return f"Case {case}: where the keys differ"


def case_figure(info: KeyDifferenceInfo, case: str) -> Spec:
    """Return the Plotly spec of |ΔK| by position and layer, the bug unnamed."""
    spec = key_difference_figure(info)
    plain = layout(title=case_title(case), caption=_caption(info), meta={}, height=1)
    spec["layout"]["title"] = {
        **spec["layout"]["title"],
        "text": plain["title"]["text"],
    }
    spec["layout"]["meta"] = {
        "figure": "exercise-bug",
        "case": case,
        "chunk_tokens": info.chunk_tokens,
    }
    return spec


def case_alt(info: KeyDifferenceInfo, case: str) -> str:
    """Return the picture's numbers for those who cannot see it."""
    return f"Heatmap of |ΔK|. {case_title(case)}. {'; '.join(_caption(info))}. {info.finding}"


def _caption(info: KeyDifferenceInfo) -> list[str]:
    return [info.caption[0], f"bug: to be found; {info.path.words}, float32, s11"]
