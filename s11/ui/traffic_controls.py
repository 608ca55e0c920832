"""The traffic page's controls: the traffic, the two schedulers, the machine, the targets."""

from __future__ import annotations

from typing import Any

import streamlit as st

from s11.policies import CHUNKING
from s11.presets import ABOUT
from s11.traffic_presets import TRAFFIC_PRESETS
from s11.ui import traffic_state as state
from s11.ui.frame import plain
from s11.ui.machine import machine_pills
from s11.ui.traffic_samples import sample_control
from s11.ui.traffic_state import DEFAULTS, POLICIES, REAL, SAMPLE, UPLOAD, WHOLE
from s11.ui.traffic_upload import upload_control
from s11.words import count


def mode_control() -> str:
    """Lay the choice between one rate looked at closely, and the search for the highest."""
    return str(
        st.segmented_control(
            "What to see",
            options=state.MODES,
            default=DEFAULTS["traffic_mode"],
            required=True,
            key="traffic_mode",
            bind="query-params",
            label_visibility="collapsed",
            help="Traffic: two schedulers on the same requests. Capacity: the highest rate that "
            "holds the targets, by chunk size.",
        )
    )


def arrivals_control() -> None:
    """Lay whether drawn requests come at a rate, or from clients who wait for their answers."""
    st.segmented_control(
        "Arrivals",
        options=state.ARRIVALS,
        default=DEFAULTS["arrivals"],
        required=True,
        key="arrivals",
        bind="query-params",
        help="At a rate: whether or not others are answered. Closed-loop clients: each sends its "
        "next request when its last one is answered, so that never more than so many are under "
        "way.",
    )


def pace_control() -> None:
    """Lay the dominant control: the rate, the number of clients, or how fast a trace is played."""
    if state.is_closed_loop():
        _clients()
        return
    if state.is_trace():
        st.select_slider(
            "Time scale of the trace: 0.5 plays it twice as fast",
            options=state.TIME_SCALES,
            value=DEFAULTS["trace_scale"],
            key="trace_scale",
            bind="query-params",
        )
        return
    st.select_slider(
        "Request rate (requests per second)",
        options=state.RATES,
        value=DEFAULTS["rate"],
        key="rate",
        bind="query-params",
    )


def _clients() -> None:
    """Lay how many clients there are, and how long they think."""
    st.select_slider(
        "Clients",
        options=state.CLIENTS,
        value=DEFAULTS["clients"],
        key="clients",
        bind="query-params",
        width="stretch",
    )
    real("think_ms", "Think time (ms)", width=180, help="From an answer's end to the next request.")


def closed_loop_note() -> None:
    """Say what follows from the numbers of clients and of requests, once both are laid."""
    clients, requests = int(state.value_of("clients")), int(state.value_of("request_count"))
    st.markdown(f":small[{closed_loop_words(clients, requests)}]")


def closed_loop_words(clients: int, requests: int) -> str:
    """Return who sends how many of the requests, and that the schedulers set the pace."""
    busy, (each, more) = min(clients, requests), divmod(requests, clients)
    told = f"{count(busy, 'client')}, {count(each or 1, 'request')} each"
    if each and more:
        told = f"{count(clients, 'client')}, {each:,} or {each + 1:,} requests each"
    elif not each and busy < clients:
        told += f"; the other {clients - busy:,} have none to send"
    return f"{told}. All begin at once; from then on a scheduler's answers set the pace."


CHUNK_HELP = (
    "Most tokens in one step, decodes included (SGLang: prompt tokens alone). Capacity tries many."
)


def traffic_control() -> None:
    """Lay whose requests they are like, or the file that they come from."""
    st.pills(
        "Traffic",
        options=[*state.SOURCES, SAMPLE, UPLOAD],
        default=DEFAULTS["traffic"],
        required=True,
        key="traffic",
        bind="query-params",
        help="How long prompts and answers are. A trace is run as it was recorded, in any of the "
        "public formats.",
    )
    if state.is_uploaded():
        upload_control()
    elif state.is_trace():
        sample_control()


def details() -> None:
    """Lay what seldom changes, behind a fold: the draw, the targets, the machine.

    Laid though it is folded away: a control that is not laid has no value.
    """
    with st.expander("Requests, targets, machine and engine", icon=":material/tune:"):
        if state.is_trace():
            _part_of_the_trace()
        else:
            _draw()
        _targets()
        _machine()


def _draw() -> None:
    places = st.container(key="pair_traffic_load").columns(3)
    with places[0]:
        if state.is_searching():
            whole("search_requests", "Requests", help="How many are drawn at each tried rate.")
        else:
            whole("request_count", "Requests", help="How many are drawn. More show rarer stalls.")
    with places[1]:
        real(
            "burstiness",
            "Burstiness",
            help="Of gamma-distributed gaps, as vllm bench serve has it: 1 is Poisson, less is "
            "burstier, more is steadier. Closed-loop clients have no gaps to draw.",
            disabled=state.is_closed_loop(),
        )
    with places[2]:
        whole("seed", "Seed", help="The same seed draws the same requests at every rate.")
    preset = TRAFFIC_PRESETS[state.SOURCES[str(state.value_of("traffic"))]]
    st.markdown(f":small[{plain(preset.source)}]")


def _part_of_the_trace() -> None:
    places = st.container(key="pair_traffic_window").columns(3)
    with places[0]:
        real("trace_from", "From (s)", help="Seconds from the file's first request.")
    with places[1]:
        real("trace_to", "To (s)", placeholder="its end", help="Seconds, in the file's own time.")
    with places[2]:
        whole("trace_first", "First N requests", help="At most so many of that part are run.")


def sides() -> None:
    """Lay the two schedulers, each with its chunk size."""
    places = st.columns(2)
    for place, name in zip(places, "ab", strict=True):
        with place, st.container(border=True):
            side_control(name, f"{name.upper()}: scheduler")


def side_control(name: str, label: str, *, every_size: bool = False) -> None:
    """Lay one scheduler and its chunk size.

    every_size: all chunk sizes are tried, so that the field has nothing to say.
    """
    left, right = st.container(key=f"pair_traffic_{name}").columns(2)
    with left:
        st.selectbox(
            label,
            options=list(POLICIES),
            index=list(POLICIES).index(DEFAULTS[name]),
            key=name,
            bind="query-params",
            help=ABOUT[POLICIES[str(state.value_of(name))]],
        )
    with right:
        cuts = POLICIES[str(state.value_of(name))] in CHUNKING
        whole(
            f"{name}_chunk",
            "Chunk (tokens a step)",
            disabled=every_size or not cuts,
            help=CHUNK_HELP if cuts else "This scheduler takes prompts whole.",
        )


def _targets() -> None:
    places = st.container(key="pair_traffic_targets").columns(2)
    with places[0]:
        real("gap_target", "ITL target (ms)", help="No user shall wait longer between two tokens.")
    with places[1]:
        real("ttft_target", "TTFT target (ms)", help="Nor longer for the first one.")


def _machine() -> None:
    st.segmented_control(
        "What a step costs",
        options=state.STEP_COSTS,
        default=DEFAULTS["step_cost"],
        required=True,
        key="step_cost",
        bind="query-params",
    )
    if state.value_of("step_cost") == state.MACHINE_COST:
        machine_pills(state.MODEL_KEY, chapter=False)
    places = st.container(key="pair_traffic_engine").columns(2)
    with places[0]:
        whole("most_running", "Most running requests", help="Seats of the engine.")
    with places[1]:
        st.toggle(
            "Prefix cache",
            value=DEFAULTS["caching"],
            key="caching",
            bind="query-params",
            help="Share whole KV blocks of equal beginnings; of the formats, Mooncake's alone "
            "tells which are equal.",
        )


def whole(key: str, label: str, **options: Any) -> None:
    """Lay a field for a whole number within its bounds."""
    low, high, step = WHOLE[key]
    st.number_input(
        label,
        min_value=low,
        max_value=high,
        value=DEFAULTS[key],
        step=step,
        key=key,
        bind="query-params",
        **options,
    )


def real(key: str, label: str, **options: Any) -> None:
    """Lay a field for a number within its bounds."""
    low, high, step = REAL[key]
    st.number_input(
        label,
        min_value=low,
        max_value=high,
        value=DEFAULTS[key],
        step=step,
        format="%g",
        key=key,
        bind="query-params",
        **options,
    )
