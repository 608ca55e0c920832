"""A chart that changes in place: no blank frame, zoom kept, drawn once a change.

`st.plotly_chart` takes the old chart away and draws the new one twice at every change; a
component that calls `Plotly.react` redraws what differs. plotly.js comes from the installed
package. Where it cannot be served or loaded, `st.plotly_chart` stands in.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import streamlit as st
from streamlit import runtime

from s11.figures.theme import Spec

STATIC_FOLDER = Path(__file__).resolve().parents[2] / "static"

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

export default function ({data, parentElement, setStateValue}) {
  const chart = parentElement.querySelector('.s11-chart');
  const {spec, config, alt, script} = data;
  const {data: traces, layout} = JSON.parse(spec);
  chart.style.height = `${layout.height}px`;
  chart.setAttribute('aria-label', alt);
  let gone = false;
  load(script)
    .then((Plotly) => {
      if (gone) return;
      Plotly.react(chart, traces, layout, {...config, responsive: true});
    })
    .catch(() => { if (!gone) setStateValue('failed', true); });
  return () => { gone = true; };
}
"""


@st.cache_resource
def _script_address() -> str | None:
    """Lay plotly.js where the server serves it and return its address; None where it cannot."""
    served = runtime.exists() and type(runtime.get_instance()) is runtime.Runtime
    if not served or not st.get_option("server.enableStaticServing"):
        return None
    from s11.figures.drawn import plotly_js

    source, name = plotly_js()
    try:
        STATIC_FOLDER.mkdir(exist_ok=True)
        if not (STATIC_FOLDER / name).exists():
            partial = STATIC_FOLDER / f".{name}"
            shutil.copyfile(source, partial)
            partial.replace(STATIC_FOLDER / name)
    except OSError:
        return None
    return f"app/static/{name}"


@st.cache_resource
def _component() -> object:
    return st.components.v2.component("s11_chart", html=_HTML, js=_JS, isolate_styles=False)


def live_chart(spec: Spec, *, key: str, alt: str, config: Spec) -> bool:
    """Draw a chart that changes in place; False where that is not possible here."""
    from s11.figures.drawn import as_json

    failed_key = f"{key}_failed"
    script = None if st.session_state.get(failed_key) else _script_address()
    if script is None:
        return False
    result = _component()(  # type: ignore[operator]
        key=key,
        data={
            "spec": as_json(spec),
            "config": config,
            "alt": alt,
            "script": script,
        },
        on_failed_change=lambda: None,
    )
    if result.failed:
        st.session_state[failed_key] = True
        return False
    return True
