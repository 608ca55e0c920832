"""The compare page's state: what its controls hold, kept in the session and in the link."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from s11.entries import Entry, entry_labels
from s11.experiment import Experiment
from s11.metric_rows import EngineRun
from s11.ui.compare_link import LINK_CHECKS, Asked, from_link, to_link
from s11.ui.runs import run

ASKED, SEEN, LOADED = "compare_asked", "compare_links_seen", "compare_loaded"
REFUSED = "compare_refused"
"""Where a sentence waits that says which change was not made."""
MOST_SEEN = 50
OUTSIDE = ("picture",)  # parameters that another control keeps

MOST_BLOCK_OBJECTS, MOST_BLOCK_LOOKS = 200_000, 8_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """What was run, and a sentence for each engine that could not be."""

    runs: tuple[EngineRun, ...]
    refused: tuple[str, ...]


def asked() -> Asked:
    """Return what the controls hold; of the link, where it is new to this session.

    A request of the browser may still carry the link from before the last change, so links
    that were written or read before are not read again.
    """
    link = _own_link()
    seen: list[str] = st.session_state.setdefault(SEEN, [])
    known = ASKED in st.session_state and (not link or str(link) in seen)
    if not known:
        try:
            st.session_state[ASKED] = from_link(link)
        except ValueError as error:  # each value is fine, together they are not
            st.session_state[REFUSED] = f"{error}. The costs of the scene are shown instead."
            st.session_state[ASKED] = from_link(
                {key: text for key, text in link.items() if key in ("scene", "engines", "requests")}
            )
        st.session_state[LOADED] = st.session_state.get(LOADED, 0) + 1
        _remember(link)
    found: Asked = st.session_state[ASKED]
    return found


def change(new: Asked) -> None:
    """Make the controls hold something else."""
    st.session_state[ASKED] = new


def write_link() -> None:
    """Write what the controls hold into the page's link."""
    wanted, link = to_link(asked()), _own_link()
    if wanted == link:
        return
    _remember(wanted)
    for key in link.keys() - wanted.keys():
        del st.query_params[key]
    for key, text in wanted.items():
        if link.get(key) != text:
            st.query_params[key] = text


def _own_link() -> dict[str, str]:
    own = [key for key in LINK_CHECKS if key not in OUTSIDE]
    return {key: st.query_params[key] for key in own if key in st.query_params}


def _remember(link: dict[str, str]) -> None:
    seen: list[str] = st.session_state.setdefault(SEEN, [])
    if str(link) not in seen:
        seen.append(str(link))
        del seen[:-MOST_SEEN]


def runs_of(entries: tuple[Entry, ...], common: Experiment) -> Runs:
    """Return the load's run on each engine; knobs that do not go together leave one out."""
    found, refused = [], []
    for entry, label in zip(entries, entry_labels(entries), strict=True):
        try:
            experiment = entry.of(common)
            require_bounded(experiment)
            ran = run(experiment)
        except ValueError as error:
            refused.append(f"{label} is left out: {error}.")
            continue
        found.append(
            EngineRun(label=label, experiment=experiment, result=ran.result, metrics=ran.metrics)
        )
    return Runs(tuple(found), tuple(refused))


def require_bounded(experiment: Experiment) -> None:
    """Refuse a prefix cache of more blocks than this page can look through in a second or two.

    Raises:
        ValueError: too many blocks, or looked at too often.
    """
    limits, requests = experiment.limits, experiment.workload.requests
    if not limits.prefix_caching:
        return
    blocks = [-(-(r.prompt_tokens + r.output_tokens) // limits.block_size) for r in requests]
    found = [
        number
        for number, request in zip(blocks, requests, strict=True)
        if request.shared_group is not None or limits.kv_blocks is not None
    ]
    slice_tokens = min(limits.tokens_per_slice(), limits.tokens_per_step())
    steps = sum([r.output_tokens + r.prompt_tokens / slice_tokens for r in requests])
    if sum(blocks) > MOST_BLOCK_OBJECTS or max(found, default=0) * steps > MOST_BLOCK_LOOKS:
        raise ValueError(
            f"block_size: {limits.block_size} makes {sum(blocks):,} blocks of these prompts, more "
            "than this page looks through in every step with prefix caching on (larger blocks or "
            "shorter prompts do)"
        )
