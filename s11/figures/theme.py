"""Colours, fonts and layout that every figure shares.

A figure is always drawn for white paper, so that the picture that leaves is fit for a slide
and for grey print. The page shows its dark twin by style rules (`dark_twin_css`), which the
picture does not carry.

Colours: Okabe & Ito, "Color Universal Design", 2008. Each is paired with a pattern or a form.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]

PREFILL = "#E69F00"
DECODE = "#0072B2"
FIXED = "#B4BAC4"
STALL = "#D55E00"
STALL_TEXT = "#A84A00"  # 5.9:1 on white, where the mark's own colour has 3.9:1
IDLE = "#009E73"
PREEMPTED = "#CC79A7"
HAND_OVER = "#56B4E9"
INK = "#1B2430"
MUTED = "#5A6675"
GRID = "#E3E8EE"
PAPER = "#FFFFFF"

DARK_TWIN = {
    PAPER: "#0F141A",
    INK: "#E6EBF1",
    MUTED: "#A3AFBD",
    GRID: "#26303B",
    DECODE: "#56B4E9",
    STALL: "#FF8A47",
    STALL_TEXT: "#FF9A60",
    FIXED: "#6B7684",
    IDLE: "#2DBE94",
}

# A saved picture has only the system's fonts; with one of them on the page too, every label box
# fits its text in both.
FONT = "Arial, Helvetica, sans-serif"


def layout(*, title: str, caption: list[str], meta: Spec, height: int) -> Spec:
    """Return the layout that every figure starts from.

    Args:
        title: the finding, about 45 characters at most (it must fit 390 px).
        caption: lines with the parameters, each about 60 characters at most.
        meta: what tests and readers of the figure look for.
        height: px.
    """
    lines = "<br>".join([f"<b>{title}</b>", *caption_lines(caption)])
    return {
        "template": {},
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "font": {"family": FONT, "size": 13, "color": INK},
        "title": {
            "text": lines,
            "font": {"size": 18, "color": INK},
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "pad": {"l": 12, "t": 24},  # less would cut the letters' tops
            "y": 1,
            "yref": "container",
            "yanchor": "top",
        },
        "margin": {"l": 62, "r": 16, "t": 52 + 20 * len(caption), "b": 44},
        "height": height,
        "meta": meta,
        "hoverlabel": {
            "bgcolor": PAPER,
            "bordercolor": MUTED,
            "font": {"family": FONT, "size": 13, "color": INK},
        },
        "dragmode": "zoom",
    }


def caption_lines(caption: list[str]) -> list[str]:
    """Return caption lines in the smaller, quieter type of a figure's head."""
    return [f'<span style="font-size:12px;color:{MUTED}">{line}</span>' for line in caption]


def axis(**changes: Any) -> Spec:
    """Return an axis with our grid, ticks and title."""
    spec: Spec = {
        "gridcolor": GRID,
        "linecolor": MUTED,
        "zeroline": False,
        "ticks": "",
        "tickfont": {"size": 12, "color": INK},
        "title": {"font": {"size": 12, "color": MUTED}, "standoff": 8},
        "automargin": False,
    }
    for key, value in changes.items():
        spec[key] = {**spec[key], **value} if isinstance(value, dict) and key in spec else value
    return spec


def bottom_legend() -> Spec:
    """Return a legend in rows along the picture's lower edge, clear of every mark."""
    return {
        "orientation": "h",
        "traceorder": "normal",
        "x": 0,
        "xref": "container",
        "xanchor": "left",
        "y": 0,
        "yref": "container",
        "yanchor": "bottom",
        "font": {"size": 12, "color": INK},
        "bgcolor": "rgba(0,0,0,0)",
        "itemsizing": "constant",
    }


def picture_config(
    *, filename: str, image_format: str, width: int, height: int, scale: float
) -> Spec:
    """Return the chart configuration: the camera button saves a picture fit for a slide.

    Args:
        filename: without ending.
        image_format: "png" or "svg".
        width: px of the picture before scaling.
        height: px of the picture before scaling.
        scale: how many times larger it is saved, type and all.
    """
    return {
        "displaylogo": False,
        "displayModeBar": True,
        "modeBarButtonsToRemove": [
            "select2d",
            "lasso2d",
            "autoScale2d",
            "zoomIn2d",
            "zoomOut2d",
            "sendChartToCloud",
        ],
        "toImageButtonOptions": {
            "format": image_format,
            "filename": filename,
            "width": width,
            "height": height,
            "scale": scale,
        },
        "scrollZoom": False,
    }


def dark_twin_css() -> str:
    """Return style rules that show every figure's dark twin where the page is dark.

    They match the colours that Plotly writes into its marks, and take effect by the page's
    own `color-scheme`; a saved picture has none of them and stays white.
    """
    rules = []
    for light, dark in DARK_TWIN.items():
        for what in ("fill", "stroke"):
            rules.append(
                f'.js-plotly-plot [style*="{what}: {_rgb(light)}"],'
                f'.js-plotly-plot tspan[style*="{what}:{light}"]'
                f"{{{what}:light-dark({light},{dark}) !important}}"
            )
    rules.append(
        f'.js-plotly-plot .main-svg[style*="background: {_rgb(PAPER)}"]'
        f"{{background:light-dark({PAPER},{DARK_TWIN[PAPER]}) !important}}"
    )
    rules.append(
        ".js-plotly-plot .modebar-group{background:transparent !important}"
        ".js-plotly-plot .modebar-btn .icon path{fill:light-dark(#5A6675,#A3AFBD) !important}"
    )
    return "<style>" + "".join(rules) + "</style>"


def _rgb(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"
