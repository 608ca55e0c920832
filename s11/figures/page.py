"""A figure as a page of its own: one HTML file that needs nothing else, fit for a slide."""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from typing import Any

from s11.figures.drawn import as_json, plotly_js
from s11.figures.slide import has_fixed_places, picture_size
from s11.figures.theme import picture_config

_STYLE = (
    "html,body{margin:0;background:#FFFFFF}body{overflow-x:hidden}#picture{transform-origin:0 0}"
)

# In a window of 1920 x 1080 the picture fills it, its type larger by as much as in a saved one.
_DRAW = """
const {spec, config, size, fixed} = JSON.parse(document.getElementById('spec').textContent);
const place = document.getElementById('picture');
function draw() {
  const scale = Math.max(1, Math.min(innerWidth / size.width, innerHeight / size.height));
  const width = innerWidth / scale;
  const wide = width >= 760 ? spec.layout.meta?.wide : undefined;
  const layout = {...spec.layout, ...wide, width};
  if (!fixed) layout.height = Math.max(layout.height, innerHeight / scale);
  place.style.width = `${width}px`;
  place.style.transform = `scale(${scale})`;
  Plotly.react(place, spec.data, layout, config);
}
addEventListener('resize', draw);
draw();
"""


def self_contained_html(spec: dict[str, Any], *, title: str) -> str:
    """Return an HTML page with the figure and all of plotly.js in it (about 5 MB)."""
    size = picture_size(spec["layout"])
    filename = f"s11-{spec['layout']['meta']['figure']}"
    config = picture_config(filename=filename, image_format="png", **asdict(size))
    fixed = json.dumps(has_fixed_places(spec["layout"]))
    told = (
        f'{{"spec":{as_json(spec)},"config":{json.dumps(config)},'
        f'"size":{json.dumps(asdict(size))},"fixed":{fixed}}}'
    ).replace("</", "<\\/")
    library = plotly_js()[0].read_text(encoding="utf-8").replace("</script", "<\\/script")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        '<body><div id="picture"></div>'
        f'<script type="application/json" id="spec">{told}</script>'
        f"<script>{library}</script><script>{_DRAW}</script></body></html>"
    )
