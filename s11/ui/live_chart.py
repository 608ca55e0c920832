"""A chart that changes in place: no blank frame, zoom kept, drawn once a change.

`st.plotly_chart` takes the old chart away and draws the new one twice at every change; a
component that calls `Plotly.react` redraws what differs. plotly.js comes from the installed
package. Where it cannot be served or loaded, `st.plotly_chart` stands in.

Who zooms a chart along x can be told to the server, which may then send finer numbers. A figure
whose `layout.meta` says `plays_until` has buttons that play it (play.js); one whose meta has a
`scenario` follows the stops of a slider (slider_stops.js).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from s11.figures.theme import Spec

MOST_SHOWN = 1e15  # of an x axis; also keeps out what is no number, and what no float holds

HERE = Path(__file__).parent

_HTML = """<div class="s11-live">
<svg aria-hidden="true"><clipPath><rect x="0" y="0" width="0" height="0"/></clipPath></svg>
<div class="s11-chart" role="figure"></div>
<div class="s11-play" role="group" aria-label="Play the timeline" hidden>
<button type="button">Play</button>
<button type="button">Step back</button>
<button type="button">Step on</button>
<button type="button">Show all</button>
<span class="s11-told" aria-live="polite"></span>
</div></div>"""


@st.cache_resource
def _script_address() -> str | None:
    """Lay plotly.js where the server serves it and return its address; None where it cannot."""
    served = runtime.exists() and type(runtime.get_instance()) is runtime.Runtime
    context = get_script_run_ctx()
    if not served or context is None or not st.get_option("server.enableStaticServing"):
        return None
    from s11.figures.drawn import plotly_js

    source, name = plotly_js()
    folder: Path = context.main_script_parent / "static"  # an installed app.py lies far from here
    try:
        folder.mkdir(exist_ok=True)
        if not (folder / name).exists():
            partial = folder / f".{name}"
            shutil.copyfile(source, partial)
            partial.replace(folder / name)
    except OSError:
        return None
    return f"app/static/{name}"


@st.cache_resource
def _component() -> object:
    scripts = [(HERE / name).read_text(encoding="utf-8") for name in ("play.js", "live_chart.js")]
    return st.components.v2.component(
        "s11_chart",
        html=_HTML,
        js="\n".join(scripts),
        css=(HERE / "live_chart.css").read_text(encoding="utf-8"),
        isolate_styles=False,
    )


Zoomed = tuple[float, float] | None
"""The x range that was zoomed to; None for all."""


def can_change_in_place(key: str) -> bool:
    """Return whether the chart of this key changes in place here, as far as is known."""
    return not st.session_state.get(f"{key}_failed") and _script_address() is not None


def live_chart(
    spec: Spec,
    *,
    key: str,
    alt: str,
    config: Spec,
    on_zoom: Callable[[Zoomed], None] | None = None,
) -> bool:
    """Draw a chart that changes in place; False where that is not possible here.

    on_zoom: called before the page runs again when somebody zoomed along x.
    """
    from s11.figures.drawn import as_json

    if not can_change_in_place(key):
        return False

    def tell() -> None:
        told = _x_range((st.session_state.get(key) or {}).get("zoomed"))
        if on_zoom is not None and told is not False:
            on_zoom(told)

    result = _component()(  # type: ignore[operator]
        key=key,
        data={
            "spec": as_json(spec),
            "config": config,
            "alt": alt,
            "script": _script_address(),
            "tellsZoom": on_zoom is not None,
        },
        on_failed_change=lambda: None,
        on_zoomed_change=tell,
    )
    if result.failed:
        st.session_state[f"{key}_failed"] = True
        return False
    return True


def _x_range(told: object) -> Zoomed | Literal[False]:
    """Return the range that a browser told of; False where it is none."""
    if told == "all":
        return None
    if not isinstance(told, list | tuple) or len(told) != 2:
        return False
    if not all(isinstance(edge, int | float) and abs(edge) < MOST_SHOWN for edge in told):
        return False
    low, high = sorted([float(told[0]), float(told[1])])
    return (low, high) if low < high else False
