"""The style rules of a slide: what it hides, how large its type is, how a picture fits on it."""

from __future__ import annotations

from math import ceil

from s11.figures.slide import TYPE_SCALE
from s11.figures.theme import DARK_TWIN, INK, MUTED, PAPER

PAGE_REM_PX = 16
# Heights in rem of a slide, which the pictures leave free.
TITLE_REM, FIGURES_REM, FOOT_REM, EDGE_REM = 2.3, 4.9, 3.1, 0.5
SIDES_PX = 48
PLAY_PX = 1280  # narrower, there is no room beside the caption
LOW_PX = 800  # a window this low shows no page title: the picture bears its own
PHONE_PX = 640
# Type of a slide to a page's; the first two where a projector has many more pixels.
LARGER = ((3.0, 3840, 2160), (2.0, 2560, 1440))
SMALLER = (1.4, 1.3, 1.2, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)

KEPT = (
    'h1,[data-testid="stMetric"],[data-testid="stPlotlyChart"],.s11-chart,.js-plotly-plot,'
    '.s11_texts .cards,.s11-slide,[data-testid="stAlertContentError"],[class*="st-key-slide_"]'
)
_HIDDEN = ("stElementContainer", "stLayoutWrapper", "stVerticalBlock", "stColumn")


def slide_css(*, dark: bool) -> str:
    """Return the style rules that make a page a slide, white or dark."""
    return f"<style>{_scheme(dark)}{_hidden()}{_PLACES}{_larger()}{_PHONE}{_PRINT}</style>"


def picture_css(
    key: str,
    *,
    fixed: bool,
    phone_px: int,
    lowest_px: int,
    narrowest_px: int,
    first: bool,
    below_figures: bool,
) -> str:
    """Return the style rules that fit one picture on one slide, type as large as it allows.

    Args:
        key: of the picture's element.
        fixed: the figure says its own height.
        phone_px: the height that it asks for on a phone, where a slide may scroll.
        lowest_px: the least height at which it still reads well.
        narrowest_px: the least width.
        first: it stands below the page's title.
        below_figures: if first, below a row of headline figures too.
    """
    figures_rem = FIGURES_REM if first and below_figures else 0.0
    title = "var(--title)" if first else "0rem"
    place = f".st-key-{key}"
    taken = f"{EDGE_REM + figures_rem + FOOT_REM:g}rem + {title}"
    rules = [
        f"{place}{{--free:calc(100vh - ({taken}));--high:{TYPE_SCALE};--broad:{TYPE_SCALE};"
        "--scale:min(var(--high),var(--broad))}"
    ]
    for scale, width, height in reversed(LARGER):
        room = f"(min-width:{width}px) and (min-height:{height}px)"
        rules.append(f"@media {room}{{{place}{{--high:{scale};--broad:{scale}}}}}")
    if not fixed:
        rules.append(f"{place} .s11-chart{{height:calc(var(--free)/var(--scale)) !important}}")
    larger = TYPE_SCALE
    for scale in SMALLER:
        needed = _window_px(lowest_px * larger, first=first, figures_rem=figures_rem)
        rules.append(f"@media (max-height:{ceil(needed) - 1}px){{{place}{{--high:{scale}}}}}")
        broad = ceil(narrowest_px * larger + SIDES_PX)
        rules.append(f"@media (max-width:{broad - 1}px){{{place}{{--broad:{scale}}}}}")
        larger = scale
    rules.append(f"@media (max-width:{PHONE_PX}px){{{place}{{--scale:1;--free:{phone_px}px}}}}")
    return f"<style>{''.join(rules)}</style>"


def _window_px(picture_px: float, *, first: bool, figures_rem: float) -> float:
    """Return the least height of a window in which a picture has so many px."""
    rem_px = PAGE_REM_PX * TYPE_SCALE
    untitled = picture_px + (EDGE_REM + figures_rem + FOOT_REM) * rem_px
    if not first or untitled <= LOW_PX:
        return untitled
    return max(LOW_PX + 1.0, untitled + TITLE_REM * rem_px)


def _scheme(dark: bool) -> str:
    paper, ink, muted = (DARK_TWIN[c] if dark else c for c in (PAPER, INK, MUTED))
    return (
        f":root{{color-scheme:{'dark' if dark else 'light'}}}"
        f".stApp{{color-scheme:{'dark' if dark else 'light'};background:{paper};color:{ink}}}"
        ".stApp :is(h1,[data-testid=stMetricValue],[data-testid=stMetricValue] *,"
        ".s11_texts .value)"
        f"{{color:{ink} !important}}"
        f".stApp :is([data-testid=stMetricLabel],[data-testid=stMetricLabel] *,"
        f"[data-testid^=stMetricDelta],[data-testid^=stMetricDelta] *,"
        f".s11_texts .label,.s11_texts .delta,.s11_texts .description)"
        f"{{color:{muted} !important}}"
        f".s11-slide{{color:{muted};background:{paper}}}.s11-slide a{{color:{ink}}}"
        f'.s11-play button,[class*="st-key-slide_"] button{{color:{ink} !important;'
        f"background:{paper} !important;border-color:{muted} !important}}"
    )


def _hidden() -> str:
    blocks = ",".join(f'[data-testid="{name}"]' for name in _HIDDEN)
    return (
        f".block-container :is({blocks}):not(:has({KEPT})):not([class*='st-key-slide_'])"
        ":not([class*='st-key-slide_'] *){display:none}"
        '[data-testid="stHeader"],[data-testid="stExpander"],[data-testid="stPopover"],'
        '[data-testid="stHeaderActionElements"],[data-testid="stMetric"] '
        '[data-testid="stTooltipIcon"],.block-container [role="tablist"],'
        ".s11_texts .about,.plotly-notifier{display:none !important}"
        # Headline figures are those of the first row.
        '[data-testid="stLayoutWrapper"]:has([data-testid="stMetric"])~'
        '[data-testid="stLayoutWrapper"]:has([data-testid="stMetric"])'
        ":not(:has(.s11-chart)){display:none}"
    )


_PLACES = f"""
:root{{font-size:{PAGE_REM_PX * TYPE_SCALE:g}px;
--title:{TITLE_REM}rem;--foot:{FOOT_REM}rem}}
.block-container{{max-width:none;padding:{EDGE_REM}rem 1rem {FOOT_REM - 0.2:g}rem}}
.block-container [data-testid="stVerticalBlock"]{{gap:0}}
.block-container h1{{font-size:min(1.7rem,3.2vw);line-height:1.2;padding:0}}
[data-testid="stElementContainer"]:has(h1){{height:{TITLE_REM}rem;overflow:hidden}}
[data-testid="stHeading"],[data-testid="stHeading"] *{{margin-bottom:0}}
.stMain{{overflow-anchor:none}}
.block-container [data-testid="stHorizontalBlock"]:has(.s11-chart){{flex-direction:column;gap:0}}
.block-container [data-testid="stColumn"]:has(.s11-chart){{width:100%;flex:1 1 auto}}
[data-testid="stMetric"],[data-testid="stMetric"]>div{{border:0;padding:0}}
@media (min-width:{PHONE_PX + 1}px){{
[data-testid="stHorizontalBlock"]:has([data-testid="stMetric"]){{flex:0 0 {FIGURES_REM}rem;
flex-wrap:nowrap;overflow:hidden}}
.s11_texts .cards{{height:{FIGURES_REM}rem;overflow:hidden}}
[data-testid="stColumn"]:has([data-testid="stMetric"]){{min-width:0 !important;
width:auto;flex:1 1 0 !important}}
[data-testid="stHorizontalBlock"]:has(>:nth-child(5)) [data-testid="stMetricValue"]{{
font-size:min(1.3rem,2vw)}}
}}
[data-testid="stMetricLabel"]{{font-size:min(.875rem,2vw);min-height:0}}
[data-testid="stMetricLabel"] *{{font-size:inherit}}
[data-testid="stMetricValue"]{{font-size:min(1.7rem,3vw);line-height:1.2;padding:0}}
[data-testid^="stMetricDelta"],[data-testid^="stMetricDelta"] *{{
font-size:min(.875rem,1.45vw);background:transparent !important;opacity:1 !important}}
[data-testid="stMetricDelta"]{{padding-left:0}}
[data-testid="stElementContainer"]:has(.s11-chart){{flex:0 0 auto;height:var(--free);
overflow:hidden}}
[data-testid="stElementContainer"] .s11-chart{{width:calc(100%/var(--scale));
transform:scale(var(--scale));transform-origin:0 0}}
.s11_texts .card{{border:0;padding:0}}
.s11_texts .label{{font-size:min(.875rem,2vw)}}
.s11_texts .value{{font-size:min(1.7rem,3vw);padding:0}}
.s11_texts :is(.delta,.description){{font-size:min(.875rem,1.45vw);background:none;padding:0}}
.s11-slide{{position:fixed;z-index:99;left:0;right:0;bottom:0;height:{FOOT_REM}rem;
box-sizing:border-box;padding:.25rem 12rem .25rem 1rem;font-size:.75rem;line-height:1.3;
display:flex;flex-direction:column;justify-content:center}}
.s11-slide :is(p,a){{margin:0;font-size:.75rem;overflow:hidden;text-overflow:ellipsis;
display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow-wrap:anywhere}}
.s11-slide p{{-webkit-line-clamp:1}}
[data-testid="stLayoutWrapper"]:has(>.st-key-slide_foot){{position:absolute}}
.s11-play{{position:fixed;z-index:100;right:12rem;bottom:.75rem;flex-wrap:nowrap;
font-size:.65rem;padding:0}}
.s11-play .s11-told{{position:absolute;right:100%;margin-right:.5rem;white-space:nowrap}}
.stApp:has(.s11-play:not([hidden])) .s11-slide{{padding-right:29rem}}
@media (max-width:{PLAY_PX - 1}px){{.s11-play{{display:none !important}}
.stApp .s11-slide.s11-slide{{padding-right:12rem}}}}
.st-key-slide_back{{position:fixed;z-index:100;right:1rem;bottom:.6rem;width:auto}}
.st-key-slide_back button{{min-height:1.9rem;padding:.1rem .6rem;font-size:.75rem}}
@media (max-height:{LOW_PX}px) and (min-width:{PHONE_PX + 1}px){{
:root{{--title:0rem}}
.block-container h1,[data-testid="stElementContainer"]:has(h1){{display:none}}}}
"""


def _larger() -> str:
    return "".join(
        f"@media (min-width:{width}px) and (min-height:{height}px)"
        f"{{:root{{font-size:{PAGE_REM_PX * scale:g}px}}}}"
        for scale, width, height in reversed(LARGER)
    )


_PHONE = f"""@media (max-width:{PHONE_PX}px){{
:root{{font-size:{PAGE_REM_PX}px}}
.block-container{{padding:.5rem .75rem 7rem}}
.block-container h1{{font-size:1.35rem}}
[data-testid="stElementContainer"]:has(h1){{height:auto}}
[data-testid="stMetricLabel"]{{font-size:.875rem}}
[data-testid="stMetricValue"]{{font-size:1.35rem}}
[data-testid="stMetricDelta"]{{font-size:.8rem}}
[data-testid="stMetric"] [data-testid^="stMetricDelta"],
[data-testid="stMetric"] [data-testid^="stMetricDelta"] *{{font-size:.8rem}}
.s11_texts .value{{font-size:1.35rem}}
.s11_texts :is(.label,.delta){{font-size:.8rem}}
[data-testid="stElementContainer"]:has(.s11-chart){{height:auto;overflow:visible}}
.s11-slide{{height:auto;padding:.25rem .75rem 3rem}}
.s11-slide p{{-webkit-line-clamp:2}}
}}"""

_PRINT = """@media print{.st-key-slide_back,.modebar-container{display:none !important}}"""
