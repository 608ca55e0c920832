"""The compare page's table of metrics, and what each scheduler leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from s11.metric_rows import EngineRun, MetricRow, comparable

CSS = """<style>
.s11-metrics{overflow-x:auto}
.s11-metrics table{border-collapse:collapse;width:100%;font-size:1rem;
 font-variant-numeric:tabular-nums}
.s11-metrics caption{caption-side:bottom;text-align:left;padding:.5rem 0 0;font-size:.875rem;
 color:light-dark(#5A6675,#A3AFBD)}
.s11-metrics .aside{color:light-dark(#5A6675,#A3AFBD)}
.s11-metrics th,.s11-metrics td{padding:.35rem .6rem;text-align:right;white-space:nowrap;
 border-bottom:1px solid light-dark(#D5DCE4,#334050)}
.s11-metrics thead th{vertical-align:bottom;font-weight:600;white-space:normal}
.s11-metrics tbody th,.s11-metrics thead th:first-child{text-align:left;font-weight:400;
 white-space:normal}
.s11-metrics .best{color:light-dark(#006B4F,#4FD0AA);font-weight:700}
@media (max-width:640px){.s11-metrics table{font-size:.78rem}
 .s11-metrics th,.s11-metrics td{padding:.3rem .2rem}}
</style>"""

MEANINGS = (
    "<b>ITL</b>: from one token of a request to its next. <b>Longest stall</b>: the greatest ITL "
    "of all. <b>TTFT</b>: from a request's arrival to its first token. <b>p50, p99</b>: half, and "
    "99 of 100, are no greater. <b>SLO attainment</b>: the share of all requests that get all "
    "their tokens, every ITL within the target. <b>Makespan</b>: from the start to the last "
    "step's end."
)

LEFT_OUT: dict[str, str] = {
    "chunked": "Leaves out: Sarathi-Serve's pipeline stages and its tile-sized budgets.",
    "whole_prompt": "Leaves out: Orca's selective batching inside a step and its reservation of "
    "memory for a request's longest answer.",
    "request_level": "Leaves out: padding. FasterTransformer pads a batch to its longest prompt "
    "and its longest answer.",
    "prefill_first": "Leaves out: swapping to the host's memory and beam search.",
    "vllm_v1": "Leaves out: priorities, speculative tokens, encoder inputs, remote KV, and the "
    "step that is planned while the last one runs.",
    "sglang": "Leaves out: the cache-aware order of its queue (here: first come, first served) and "
    "the estimate of tokens to come by which it admits and retracts.",
    "tensorrt_llm": "Leaves out: the guarantee that admits only what can end without a pause "
    "(guaranteed no evict, its default), and pausing.",
    "slo_adaptive": "Leaves out: error. Here the prediction is the cost model's own.",
    "disaggregated": "Leaves out: more than two workers, a link that several share, KV that "
    "travels layer by layer, and the decode worker's KV limits.",
}


def metrics_html(runs: Sequence[EngineRun], rows: Sequence[MetricRow]) -> str:
    """Return the table, a column for each run; best is bold and bears a tick."""
    fair = comparable(runs)
    heads = "".join(
        f"<th scope='col'{_quiet(ok)}>{escape(run.label)}</th>"
        for run, ok in zip(runs, fair, strict=True)
    )
    body = "".join(
        f"<tr><th scope='row'>{escape(row.title)}</th>{''.join(_cells(row, fair))}</tr>"
        for row in rows
    )
    best = "<span class='best'>✓ best</span>" if any(any(row.best) for row in rows) else ""
    return (
        f"{CSS}<div class='s11-metrics' role='region' tabindex='0' aria-label='Metrics'>"
        f"<table><caption>{MEANINGS}</caption>"
        f"<thead><tr><th scope='col'>{best}</th>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def metrics_columns(
    runs: Sequence[EngineRun], rows: Sequence[MetricRow]
) -> dict[str, list[object]]:
    """Return the table as columns: numbers as they are: ms, shares, tokens a second, counts."""
    columns: dict[str, list[object]] = {"metric": [row.title for row in rows]}
    for number, run in enumerate(runs):
        columns[run.label] = [row.values[number] for row in rows]
    return columns


def _cells(row: MetricRow, fair: Sequence[bool]) -> list[str]:
    return [
        f"<td class='best'>✓ {escape(text)}</td>"
        if best
        else f"<td{_quiet(ok)}>{escape(text)}</td>"
        for text, best, ok in zip(row.texts, row.best, fair, strict=True)
    ]


def _quiet(fair: bool) -> str:
    """Grey what is not compared."""
    return "" if fair else " class='aside'"
