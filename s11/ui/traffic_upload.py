"""Uploaded traces: read in a stream, kept as compact arrays, known by their digest.

The file itself is let go of as soon as it is read. A link cannot carry it, and its arrays are
kept in the server's memory alone, until others take their place.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, BinaryIO

import streamlit as st
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from s11.traces import Trace, read_trace
from s11.ui.frame import plain, show_refusal
from s11.ui.traffic_kept import Kept
from s11.ui.traffic_samples import told as told_of

MOST_MEGABYTES = 200
MOST_ROWS = 500_000
MOST_KEPT_BYTES = 150_000_000
BLOCK_BYTES = 1 << 20
DIGEST, REFUSED, TURN = "traffic_digest", "traffic_refused", "traffic_upload_turn"
NONE_YET = "No trace is uploaded yet. To see one without a file, choose **A sample trace** above."


@dataclass(frozen=True, slots=True, eq=False)
class Uploaded:
    """A trace that was read, known by its file's digest."""

    digest: str
    trace: Trace


_kept: Kept[Uploaded] = Kept(size_of=lambda one: trace_bytes(one.trace), most=MOST_KEPT_BYTES)


def uploaded() -> Uploaded:
    """Return this session's trace.

    Raises:
        ValueError: none was uploaded, or the server has let go of it.
    """
    digest = st.session_state.get(DIGEST)
    if digest is None:
        raise ValueError(
            "trace: none is uploaded yet (allowed: Azure, BurstGPT, Mooncake, or a result of "
            "vllm bench serve, also gzipped)"
        )
    return kept_trace(digest)


def kept_trace(digest: str) -> Uploaded:
    """Return a trace by its digest.

    Raises:
        ValueError: it is not kept any more.
    """
    found = _kept.found(digest)
    if found is None:
        raise ValueError(
            "trace: the server has let go of the uploaded file (allowed: upload it again)"
        )
    return found


def read_upload(file: BinaryIO, *, name: str) -> Uploaded:
    """Return an uploaded file's trace, and keep it; of a very long one its beginning.

    Raises:
        ValueError: no trace of a known format, in one sentence with row and column.
    """
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(BLOCK_BYTES):
        digest.update(block)
    file.seek(0)
    key = digest.hexdigest()
    return _kept.get(key, lambda: Uploaded(key, read_trace(file, name=name, first=MOST_ROWS)))


def trace_bytes(trace: Trace) -> int:
    """Return what a trace's arrays take in memory."""
    columns = (trace.arrival_ms, trace.prompt_tokens, trace.output_tokens)
    return sum(column.nbytes for column in columns) + trace.hash_id_bytes


def upload_control() -> None:
    """Lay the uploader, and say what was read of the file."""
    turn = st.session_state.setdefault(TURN, 0)
    key = f"traffic_file_{turn}"
    st.file_uploader(
        "Trace: Azure, BurstGPT, Mooncake JSONL, or a result of vllm bench serve; also gzipped",
        key=key,
        max_upload_size=MOST_MEGABYTES,
        on_change=_take,
        args=(key,),
        help=f"Read once, then dropped: only times and token counts of up to {MOST_ROWS:,} "
        "requests are kept, in the server's memory.",
    )
    _say_what_there_is()


def has_upload() -> bool:
    """Return whether there is a trace to run; where not, the uploader has said why."""
    try:
        uploaded()
    except ValueError:
        return False
    return True


def _say_what_there_is() -> None:
    """Say what was read, or in one sentence why there is nothing, or why a file was left out."""
    refused = st.session_state.get(REFUSED)
    try:
        trace = uploaded().trace
    except ValueError as error:
        if refused is None and DIGEST not in st.session_state:
            st.info(NONE_YET, icon=":material/upload_file:")
        else:
            show_refusal(refused or error)
        return
    if refused:
        show_refusal(f"{refused}. That file is left out, and {trace.name} is still in use")
    st.markdown(f":small[{plain(told(trace))}]")


def told(trace: Trace) -> str:
    """Return what was read of a file, and what not."""
    words = told_of(trace)
    if len(trace) == MOST_ROWS:
        words += f" This page keeps the first {MOST_ROWS:,} requests of a file."
    return words


def _take(key: str) -> None:
    """Read the file that was just uploaded, and let go of it."""
    file: Any = st.session_state.get(key)
    if file is None:
        return
    try:
        st.session_state[DIGEST] = read_upload(file, name=file.name).digest
        st.session_state[REFUSED] = None
    except ValueError as error:
        st.session_state[REFUSED] = str(error)
    st.session_state[TURN] += 1  # a new uploader, without the file
    context = get_script_run_ctx()
    files = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    if context is not None and isinstance(files, MemoryUploadedFileManager):
        files.remove_file(context.session_id, file.file_id)
