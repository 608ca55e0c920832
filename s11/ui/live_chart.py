"""A chart that changes in place: no blank frame, zoom kept, drawn once a change.

`st.plotly_chart` takes the old chart away and draws the new one twice at every change; a
component that calls `Plotly.react` redraws what differs. plotly.js comes from the installed
package. Where it cannot be served or loaded, `st.plotly_chart` stands in.

Who zooms a chart along x can be told to the server, which may then send finer numbers.
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

_HTML = '<div class="s11-chart" role="figure"></div>'

_JS = """
function load(address) {
  const patience = {signal: AbortSignal.timeout(15000)};
  window.s11Plotly ??= fetch(new URL(address, document.baseURI), patience)
    .then((answer) => {
      if (!answer.ok) throw new Error(`plotly.js: ${answer.status}`);
      return answer.text();
    })
    .then((text) => new Promise((resolve, reject) => {
      // By way of a blob: a server may send scripts as plain text.
      const script = document.createElement('script');
      script.src = URL.createObjectURL(new Blob([text], {type: 'text/javascript'}));
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => reject(new Error('plotly.js does not run'));
      document.head.append(script);
    }));
  return window.s11Plotly;
}

// What a relayout says of the x axes: [low, high], "all" where they show everything again.
function zoomed(change) {
  const low = Object.keys(change).find((key) => /^xaxis\\d*\\.range\\[0\\]$/.test(key));
  if (low) return [change[low], change[low.replace('[0]', '[1]')]];
  const both = Object.keys(change).find((key) => /^xaxis\\d*\\.range$/.test(key));
  if (both) return change[both];
  return Object.keys(change).some((key) => /^xaxis\\d*\\.autorange$/.test(key)) ? 'all' : null;
}

const PAUSE_MS = 250;  // several zooms in a row are one
const WIDE_PX = 760;

export default function ({data, parentElement, setStateValue, setTriggerValue}) {
  const chart = parentElement.querySelector('.s11-chart');
  const {spec, config, alt, script, tellsZoom} = data;
  const {data: traces, layout: asked} = JSON.parse(spec);
  chart.setAttribute('aria-label', alt);
  let gone = false, pause, drawnWide;
  function draw(Plotly) {
    // A figure may say what to change in its layout where there is room for it.
    drawnWide = Boolean(asked.meta?.wide) && chart.clientWidth >= WIDE_PX;
    const layout = drawnWide ? {...asked, ...asked.meta.wide} : asked;
    chart.style.height = `${layout.height}px`;
    Plotly.react(chart, traces, layout, {...config, responsive: true});
  }
  function turn() {
    if (asked.meta?.wide && window.Plotly && (chart.clientWidth >= WIDE_PX) !== drawnWide)
      draw(window.Plotly);
  }
  function tell(change) {
    const range = zoomed(change);
    if (range === null) return;
    clearTimeout(pause);
    pause = setTimeout(() => { if (!gone) setTriggerValue('zoomed', range); }, PAUSE_MS);
  }
  load(script)
    .then((Plotly) => {
      if (gone) return;
      draw(Plotly);
      window.addEventListener('resize', turn);
      if (tellsZoom) chart.on('plotly_relayout', tell);
    })
    .catch(() => { if (!gone) setStateValue('failed', true); });
  return () => {
    gone = true;
    clearTimeout(pause);
    window.removeEventListener('resize', turn);
    chart.removeListener?.('plotly_relayout', tell);
  };
}
"""


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
    return st.components.v2.component("s11_chart", html=_HTML, js=_JS, isolate_styles=False)


Zoomed = tuple[float, float] | None
"""The x range that was zoomed to; None for all."""


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

    failed_key = f"{key}_failed"
    script = None if st.session_state.get(failed_key) else _script_address()
    if script is None:
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
            "script": script,
            "tellsZoom": on_zoom is not None,
        },
        on_failed_change=lambda: None,
        on_zoomed_change=tell,
    )
    if result.failed:
        st.session_state[failed_key] = True
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
