"""The report of one run or two: its pictures, its words and tables, as one HTML file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from s11.explain import explain
from s11.export_tables import steps_table
from s11.figures.drawn import as_json, plotly_js
from s11.figures.slide import picture_size
from s11.figures.theme import Spec, dark_twin_css, picture_config
from s11.figures.timeline import timeline_alt, timeline_figure
from s11.figures.timeline_info import SHOWN_PROMPTS, timeline_info
from s11.figures.traffic_attainment import (
    attainment_alt,
    attainment_columns,
    attainment_figure,
    attainment_info,
)
from s11.figures.traffic_cdf import cdf_figure
from s11.figures.traffic_cdf_info import cdf_alt, cdf_columns, cdf_info
from s11.figures.traffic_look import TrafficRun, check_runs, run_names
from s11.figures.traffic_over_time import over_time_figure
from s11.figures.traffic_over_time_info import over_time_alt, over_time_columns, over_time_info
from s11.figures.traffic_words import verdict
from s11.html_report import Picture, Report, Table, html_pieces
from s11.machine_words import machine_words
from s11.report_contents import Row, figure_rows, parameter_rows, run_sentences

MOST_SOURCE_REQUESTS = 200


def shows_timeline(run: TrafficRun) -> bool:
    """Return whether a run is told step by step: somebody streams, or its prompts are few."""
    workload = run.experiment.workload
    return bool(workload.streaming_users) or len(workload.requests) <= SHOWN_PROMPTS


def report_pieces(
    runs: Sequence[TrafficRun],
    *,
    version: str,
    commands: Sequence[str] = (),
    about: Sequence[str] = (),
    whole: TrafficRun | None = None,
) -> Iterator[str]:
    """Return the HTML text of a report in pieces, about 5 MB.

    commands: what gives the same runs on the command line.
    about: paragraphs on the requests' source.
    whole: the only run's experiment with chunking off; without it there is no timeline.

    Raises:
        ValueError: no run, or more than two.
    """
    check_runs(runs)
    timeline = whole if len(runs) == 1 and whole and shows_timeline(runs[0]) else None
    pictures: list[Picture] = []
    if timeline is not None:
        pictures += _timelines(runs[0], timeline)
    if len(runs) > 1 or len(runs[0].result.requests) > SHOWN_PROMPTS:
        pictures += _traffic_pictures(runs)
    names = run_names(runs)
    return html_pieces(
        Report(
            title=_title(runs, timeline),
            paragraphs=[*about, *_paragraphs(runs, timeline)],
            pictures=pictures,
            tables=[
                _joined(
                    "Figures", names, [figure_rows(run.metrics) for run in runs], kind="number"
                ),
                _joined("Parameters", names, [parameter_rows(run.experiment) for run in runs]),
            ],
            commands=commands,
            sources=_sources(runs, names),
            version=version,
            script=plotly_js()[0].read_text(encoding="utf-8"),
            style=dark_twin_css(),
        )
    )


def _title(runs: Sequence[TrafficRun], whole: TrafficRun | None) -> str:
    if len(runs) == 2:
        told = verdict(runs[0], runs[1], itl_target_ms=runs[0].experiment.itl_target_ms)
        return told.headline
    if whole is None:
        return f"{runs[0].label}, {len(runs[0].result.requests):,} requests"
    run = runs[0]
    told_of_one = explain(run.experiment, run.result, run.metrics, whole=whole.metrics)
    return told_of_one.headline


def _paragraphs(runs: Sequence[TrafficRun], whole: TrafficRun | None) -> list[str]:
    run = runs[0]
    machines = dict.fromkeys([machine_words(run.experiment) for run in runs])
    machine = [words for words in machines if words]
    if len(runs) == 2:
        told = verdict(runs[0], runs[1], itl_target_ms=run.experiment.itl_target_ms)
        return [told.text, *machine]
    if whole is None:
        told_of_run = run_sentences(run.experiment, run.result, run.metrics)
        return [" ".join(told_of_run), *machine]
    explanation = explain(run.experiment, run.result, run.metrics, whole=whole.metrics)
    return [explanation.sentence, *machine]


def _timelines(run: TrafficRun, whole: TrafficRun) -> list[Picture]:
    """Return the run's timeline, and the one with chunking off where that differs."""
    both = [run] if whole.experiment == run.experiment else [run, whole]
    pictures = []
    for one in both:
        told = explain(one.experiment, one.result, one.metrics, whole=whole.metrics)
        info = timeline_info(one.experiment, one.result, told, whole=whole.result)
        pictures.append(
            _picture(
                f"Step timeline, {one.label}",
                timeline_figure(info, metrics=one.metrics),
                timeline_alt(info, one.metrics),
                steps_table(one.result),
            )
        )
    return pictures


def _traffic_pictures(runs: Sequence[TrafficRun]) -> list[Picture]:
    experiment = runs[0].experiment
    itl_target_ms, ttft_target_ms = experiment.itl_target_ms, experiment.ttft_target_ms
    cdf = cdf_info(runs, itl_target_ms=itl_target_ms, ttft_target_ms=ttft_target_ms)
    met = attainment_info(runs, itl_target_ms=itl_target_ms, ttft_target_ms=ttft_target_ms)
    course = over_time_info(runs, itl_target_ms=itl_target_ms)
    return [
        _picture("TTFT, ITL and TPOT", cdf_figure(cdf), cdf_alt(cdf), cdf_columns(cdf)),
        _picture("Targets", attainment_figure(met), attainment_alt(met), attainment_columns(met)),
        _picture("Over time", over_time_figure(course), over_time_alt(course),
                 over_time_columns(course)),
    ]  # fmt: skip


def _picture(title: str, spec: Spec, alt: str, columns: Mapping[str, Any]) -> Picture:
    figure = spec["layout"]["meta"]["figure"]
    return Picture(
        title=title,
        spec_json=as_json(spec),
        config=picture_config(
            filename=f"s11-{figure}",
            image_format="png",
            **asdict(picture_size(spec["layout"])),
        ),
        alt=alt,
        columns=columns,
    )


def _joined(
    title: str, names: Sequence[str], each: Sequence[Sequence[Row]], *, kind: str = ""
) -> Table:
    """Return rows of one run or two side by side, by their names and units, in their order."""
    places: dict[tuple[str, str], None] = {}
    values = [{(name, unit): value for name, value, unit in rows} for rows in each]
    for rows in each:
        places |= dict.fromkeys([(name, unit) for name, _, unit in rows])
    return Table(
        title=title,
        head=("", *(names if len(names) > 1 else ["value"]), "unit"),
        rows=[
            (name, *[mine.get((name, unit), "") for mine in values], unit) for name, unit in places
        ],
        kinds=("", *[kind] * len(each), "unit"),
    )


def _sources(runs: Sequence[TrafficRun], names: Sequence[str]) -> dict[str, str]:
    """Return the experiments whose requests are few, as `--experiment FILE` reads them."""
    return {
        f"Experiment of {name} as JSON, for --experiment": json.dumps(
            run.experiment.to_dict(), indent=2
        )
        for name, run in zip(names, runs, strict=True)
        if len(run.experiment.workload.requests) <= MOST_SOURCE_REQUESTS
    }
