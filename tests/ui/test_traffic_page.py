"""The traffic page without a browser: arrival, controls, links, uploads, commands, bounds."""

import gzip
import io
import json
import threading
from functools import partial
from operator import mul
from pathlib import Path
from typing import Any

import pandas
import pytest
from streamlit.testing.v1 import AppTest

from s11.capacity import Capacity, RatePoint
from s11.catalog import MODELS, Deployment
from s11.cli import _parser
from s11.commands import experiment_from
from s11.exports import to_csv, to_parquet
from s11.presets import TITLES
from s11.traffic_presets import TRAFFIC_PRESETS
from s11.ui import traffic_runs, traffic_take_away, traffic_upload
from s11.ui.live_chart import _x_range
from s11.ui.traffic_command import capacity_command, export_command, simulate_command
from s11.ui.traffic_kept import Kept
from s11.ui.traffic_search import CHUNK_SIZES, Search, capacity_words, search, targets_of
from s11.ui.traffic_setup import DrawnTraffic, Setup, Side, UploadedTrace
from s11.ui.traffic_state import DEFAULTS, LINK_CHECKS, POLICIES, PRESETS, REAL, WHOLE

ROOT = Path(__file__).resolve().parents[2]
CDF, MET, TIME = range(3)
SMALL = {"request_count": "40", "search_requests": "40"}
AZURE = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
    b"2023-11-16 18:15:46.6805900,374,44\n"
    b"2023-11-16 18:15:47.6805900,4000,109\n"
    b"2023-11-16 18:15:48.1805900,396,55\n"
    b"2023-11-16 18:15:49.1805900,396,0\n"
)


@pytest.fixture
def page():
    def open_page(**parameters):
        app = AppTest.from_file(str(ROOT / "pages" / "traffic.py"), default_timeout=120)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_page


def chart(app, which):
    return app.get("plotly_chart")[which].proto


def meta(app, which):
    return json.loads(chart(app, which).spec)["layout"]["meta"]


def words(app):
    return " ".join(block.value for block in app.markdown)


def figures(app):
    return {metric.label: (metric.value, metric.delta) for metric in app.metric}


def setup(source=None, **changes):
    asked: dict[str, Any] = {
        "source": source
        or DrawnTraffic(
            preset="openchat", rate_per_s=5.0, burstiness=1.0, request_count=20, seed=3
        ),
        "side": Side(policy="chunked", chunk_tokens=512),
        "most_running": 64,
        "prefix_caching": False,
        "machine": None,
        "ttft_target_ms": 2_000.0,
        "itl_target_ms": 50.0,
    }
    return Setup(**asked | changes)


def test_arrives_full_and_shows_the_point_without_a_click(page):
    app = page()
    assert not app.exception
    assert not app.info
    assert not app.error
    told = words(app)
    assert "(Chunked 512) shortens the longest stall" in told.replace("\\", "")
    assert "Both serve all 600 requests" in told
    p99 = meta(app, CDF)["p99_ms"]["ITL"]
    assert p99[1] < DEFAULTS["gap_target"] < p99[0]  # chunks hold the target, whole prompts not
    assert [chart(app, which).alt.split(" ")[0] for which in (CDF, MET, TIME)] == [
        "Cumulative",
        "Targets",
        "Over",
    ]
    assert [code.value.split(" ")[3] for code in app.code] == ["simulate"] * 2


def test_a_higher_rate_brings_the_same_requests_closer(page):
    app = page(**SMALL, rate="2")
    slow = meta(app, TIME)["end_ms"]
    app.select_slider(key="rate").set_value("4").run()
    assert not app.exception
    assert meta(app, TIME)["end_ms"] < slow


@pytest.mark.parametrize("title", POLICIES)
def test_every_scheduler_runs_on_either_side(page, title):
    app = page(**SMALL, a=title, b=title, b_chunk="256")
    assert not app.exception
    assert not app.error
    assert "Longest stall, B" in figures(app)


@pytest.mark.parametrize("name", TRAFFIC_PRESETS)
def test_every_preset_of_lengths_runs_and_names_its_source(page, name):
    app = page(**SMALL, traffic=TRAFFIC_PRESETS[name].title, rate="1")
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_links_that_the_page_takes(preset):
    for name, text in PRESETS[preset].items():
        LINK_CHECKS[name](text)


def test_same_schedulers_are_told_to_be_the_same(page):
    app = page(**SMALL, a=TITLES["chunked"], b=TITLES["chunked"])
    assert "under both" in words(app)
    assert all(value == delta.removeprefix("A: ") for value, delta in figures(app).values())


def test_the_chapters_cost_needs_no_machine(page):
    app = page(**SMALL, step_cost="The chapter's cost")
    assert not app.exception
    assert not app.error
    assert all("--model" not in code.value for code in app.code)


def test_a_model_that_does_not_fit_is_one_sentence(page):
    app = page(**SMALL, llm="Llama-3.1-70B", gpu="L4")
    assert not app.exception
    assert len(app.error) == 1
    assert app.get("plotly_chart") == []


HOSTILE = {
    "rate": ["0", "-1", "1e400", "nan", "5.01", "%00", "five"],
    "request_count": ["0", "20001", "-3", "1e3", "9" * 400, "٣"],
    "seed": ["-1", "0.5", "1000001"],
    "burstiness": ["0", "inf", "nan", "-1", "1e309"],
    "a": ["Disaggregated", "chunked", "<script>"],
    "b_chunk": ["0", "131073", ""],
    "stall": ["A0", "A11", "C1", "a1"],
    "look_from": ["-1", "nan", "1e9"],
    "traffic": ["openchat ", "../../etc/passwd"],
    "trace_scale": ["0", "-1", "7"],
    "traffic_mode": ["Capacity ", "1"],
    "step_cost": ["free"],
    "caching": ["True", "1"],
    "arrivals": ["closed", "At a rate "],
    "clients": ["0", "5", "-1", "1e3", "1,024"],
    "think_ms": ["-1", "nan", "600001", "1e400", "soon"],
    "sample": ["made-up-azure.csv", "../../etc/passwd"],
    "search_requests": ["0", "2001", "1e3"],
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in HOSTILE.items() for text in texts]
)
def test_hostile_values_of_a_link_are_refused(name, text):
    with pytest.raises(ValueError, match="value: "):
        LINK_CHECKS[name](text)


def test_hostile_link_leaves_the_page_whole_and_says_so(page):
    app = page(**{name: texts[0] for name, texts in HOSTILE.items()}, unknown="1")
    assert not app.exception
    assert not app.error
    assert "Parts of this link could not be used" in app.info[0].value


@pytest.mark.parametrize("key", [*WHOLE, *REAL])
def test_defaults_lie_within_their_bounds(key):
    low, high, _ = (WHOLE | REAL)[key]
    assert DEFAULTS[key] is None or low <= DEFAULTS[key] <= high


def test_a_link_to_a_stall_shows_the_steps_around_it(page):
    app = page(**SMALL, stall="B2")
    assert "**B2.**" in words(app)
    (marked,) = [block.value for block in app.markdown if "hourglass_top" in block.value]
    assert "**Step " in marked
    links = [html.proto.body for html in app.get("html") if 'class="stalls"' in html.proto.body]
    assert "stall=B2#stalls" in links[1]
    assert "request_count=40" in links[1]  # the link carries the whole state
    assert "aria-current" in links[1]
    assert "aria-current" not in links[0]


def test_a_stretch_is_looked_at_more_closely(page):
    app = page(**SMALL, look_from="1", look_to="1.5")
    assert (meta(app, TIME)["begin_ms"], meta(app, TIME)["end_ms"]) == (1000.0, 1500.0)
    app.button(key="traffic_look_all").click().run()
    assert meta(app, TIME)["begin_ms"] == 0.0
    assert meta(app, TIME)["end_ms"] > 1500.0


@pytest.mark.parametrize(("begin", "end"), [("99999", None), ("2", "1"), ("1", "1")])
def test_a_stretch_of_nothing_shows_the_whole_run_and_says_so(page, begin, end):
    app = page(**SMALL, look_from=begin, **({"look_to": end} if end else {}))
    assert not app.exception
    assert meta(app, TIME)["begin_ms"] == 0.0
    assert any("There is nothing to look at" in caption.value for caption in app.caption)


def test_a_stall_can_be_shown_in_the_run_over_time(page):
    app = page(**SMALL)
    app.button(key="traffic_stall_look").click().run()
    assert not app.exception
    assert meta(app, TIME)["end_ms"] - meta(app, TIME)["begin_ms"] < 10_000


@pytest.mark.parametrize(
    ("told", "range_"),
    [
        ("all", None),
        ([2, 1.5], (1.5, 2.0)),
        ([1.0, 1.0], False),
        ([1.0], False),
        ([float("nan"), 1.0], False),
        ([10**400, 1.0], False),
        (["1", "2"], False),
        ({"0": 1}, False),
        (None, False),
    ],
)
def test_what_a_browser_tells_of_a_zoom_is_checked(told, range_):
    assert _x_range(told) == range_


# Uploads


def upload(app, name, data):
    app.file_uploader[0].upload(name, data, "text/csv").run()
    return app


@pytest.mark.parametrize("zipped", [False, True])
def test_an_uploaded_trace_is_run_and_the_file_let_go_of(page, zipped):
    app = page(traffic="Your own trace")
    assert [info.value for info in app.info] == [traffic_upload.NONE_YET]
    assert not app.error
    upload(app, "azure.csv", gzip.compress(AZURE) if zipped else AZURE)
    assert not app.exception
    assert not app.error
    told = words(app)
    assert "3 requests of 4 rows" in told.replace("\\", "")
    assert "Both serve all 3 requests" in told
    assert app.file_uploader[0].value is None
    assert "--trace azure.csv --first 2000 --time-scale 1" in app.code[0].value
    assert "carries all settings, but not the uploaded file" in told


def test_a_part_of_a_trace_at_another_pace(page):
    app = page(
        traffic="Your own trace", trace_from="0.5", trace_to="2", trace_first="1", trace_scale="0.5"
    )
    upload(app, "azure.csv", AZURE)
    assert "Both serve the 1 request" in words(app)
    assert "--first 1 --window-s 0.5:2 --time-scale 0.5" in app.code[0].value


@pytest.mark.parametrize(
    "data", [b"", b"hello,world\n1,2\n", b"\xff\xfe\x00\x00", AZURE.replace(b",44", b",-44")]
)
def test_a_hostile_file_is_one_sentence(page, data):
    app = upload(page(traffic="Your own trace"), "bad.csv", data)
    assert not app.exception
    assert len(app.error) == 1  # why it was refused
    assert app.error[0].value.startswith("trace: ") or "row 2" in app.error[0].value
    assert not app.info
    assert app.get("plotly_chart") == []


def test_a_hostile_file_leaves_the_trace_before_it_in_use(page):
    app = upload(page(traffic="Your own trace"), "azure.csv", AZURE)
    before = figures(app)
    upload(app, "bad.csv", b"hello,world\n1,2\n")
    assert not app.exception
    assert len(app.error) == 1
    told = app.error[0].value.replace("\\", "")
    assert "begins with 'hello,world'" in told
    assert told.endswith("That file is left out, and azure.csv is still in use.")
    assert figures(app) == before
    upload(app, "azure.csv", AZURE)
    assert not app.error


def test_a_trace_that_was_let_go_of_is_one_sentence(page, monkeypatch):
    app = upload(page(traffic="Your own trace"), "azure.csv", AZURE)
    monkeypatch.setattr(traffic_upload, "_kept", Kept(size_of=lambda one: 1, most=1))
    app.run()
    assert not app.exception
    assert len(app.error) == 1
    assert "upload it again" in app.error[0].value
    upload(app, "bad.csv", b"hello,world\n1,2\n")
    assert len(app.error) == 1


def test_an_empty_stretch_of_a_trace_is_one_sentence(page):
    app = upload(page(traffic="Your own trace", trace_from="500"), "azure.csv", AZURE)
    assert not app.exception
    assert len(app.error) == 1


def test_an_upload_that_was_let_go_of_is_asked_for_again():
    with pytest.raises(ValueError, match="upload it again"):
        traffic_upload.kept_trace("0" * 64)


def test_of_a_very_long_trace_the_beginning_is_kept(monkeypatch):
    monkeypatch.setattr(traffic_upload, "MOST_ROWS", 2)
    kept = traffic_upload.read_upload(io.BytesIO(AZURE + b"\n"), name="long.csv")
    assert len(kept.trace) == 2
    assert "keeps the first 2 requests" in traffic_upload.told(kept.trace)


# Commands


LLAMA = Deployment(model=MODELS["llama-3.1-8b"], gpu="h100", tensor_parallel=2, precision="fp8")


def drawn(**changes):
    asked: dict[str, Any] = {
        "preset": "arxiv",
        "rate_per_s": 1.4,
        "burstiness": 1.0,
        "request_count": 25,
    }
    return DrawnTraffic(**asked | {"seed": 7} | changes)


@pytest.mark.parametrize(
    "asked",
    [
        setup(),
        setup(drawn(burstiness=0.25), machine=LLAMA, prefix_caching=True),
        setup(drawn(rate_per_s=0.1), ttft_target_ms=0.3, itl_target_ms=33.3),
        *[setup(side=Side(policy=name, chunk_tokens=None)) for name in ("whole_prompt",)],
        *[setup(side=Side(policy=name, chunk_tokens=None)) for name in ("prefill_first",)],
        *[setup(side=Side(policy=name, chunk_tokens=256)) for name in ("sglang", "vllm_v1")],
        setup(side=Side(policy="slo_adaptive", chunk_tokens=2_048), machine=LLAMA),
    ],
)
def test_the_command_gives_the_same_experiment(asked):
    command = simulate_command(asked).split(" ")
    assert command[:3] == ["python", "-m", "s11"]
    told = experiment_from(_parser().parse_args(command[3:]))
    assert told == asked.experiment(traffic_runs.workload(asked.source))


def test_the_command_of_a_trace_gives_the_same_experiment(tmp_path):
    file = tmp_path / "azure.csv"
    file.write_bytes(AZURE)
    with file.open("rb") as opened:
        digest = traffic_upload.read_upload(opened, name=file.name).digest
    asked = setup(UploadedTrace(digest=digest, begin_s=0.25, end_s=9.5, first=2, time_scale=0.5))
    command = simulate_command(asked, trace_name=str(file)).split(" ")
    told = experiment_from(_parser().parse_args(command[3:]))
    assert told == asked.experiment(traffic_runs.workload(asked.source))
    assert [request.prompt_tokens for request in told.workload.requests] == [4000, 396]


@pytest.mark.parametrize("format_name", ["chrome", "parquet"])
def test_the_export_command_gives_the_same_experiment(format_name):
    asked = setup(drawn(burstiness=2.5), machine=LLAMA)
    command = export_command(asked, format_name=format_name, output="out.json", trace_name="TRACE")
    options = _parser().parse_args(command.split(" ")[3:])
    assert experiment_from(options) == asked.experiment(traffic_runs.workload(asked.source))
    assert (options.format, options.output) == (format_name, "out.json")


def test_the_capacity_command_searches_the_same():
    asked = setup(drawn(), machine=LLAMA)
    command = capacity_command(
        asked, chunk_sizes=(128, 4_096), itl_p99_ms=(12.5, 50.0), trace_name="TRACE"
    )
    options = _parser().parse_args(command.split(" ")[3:])
    assert tuple(options.chunk_sizes) == (128, 4_096)
    assert tuple(options.itl_p99_ms) == (12.5, 50.0)
    told = experiment_from(options)
    assert told.workload == traffic_runs.workload(asked.source)
    assert told.cost == asked.experiment(told.workload).cost


# Capacity


def test_a_search_finds_every_chunk_sizes_highest_rate_and_goes_on_where_it_stopped():
    asked = setup(drawn(request_count=30))
    whole = Search(asked)
    tried = list(search(whole))
    assert whole.finished
    assert [*dict.fromkeys(size for size, _ in tried)] == [*CHUNK_SIZES, None]
    part = Search(asked)
    for _, _ in zip(search(part), range(5), strict=False):
        pass
    assert not part.finished
    kept = [point for points in part.points.values() for point in points]
    rest = list(search(part))
    assert part.finished
    assert len(kept) + len(rest) == len(tried)
    assert part.points == whole.points


def test_capacity_says_what_it_has_not_and_what_it_found(page):
    app = page(**SMALL, traffic_mode="Capacity", step_cost="The chapter's cost")
    assert not app.exception
    assert app.get("plotly_chart") == []  # nothing is searched without a click
    app.button(key="traffic_search").click().run()
    assert not app.exception
    assert not app.error
    assert "A P99 ITL of 50 ms holds" in words(app)
    assert meta(app, 0)["figure"] == "traffic-chunk-capacity"
    assert len(meta(app, 1)["highest_per_s"]) == len(CHUNK_SIZES) + 1  # and whole prompts
    app.number_input(key="seed").set_value(1).run()  # other requests: not searched yet
    assert app.get("plotly_chart") == []
    assert app.button(key="traffic_search").label == "Search the highest rates"


def test_capacity_of_a_scheduler_without_chunks_is_one_sentence(page):
    app = page(**SMALL, traffic_mode="Capacity", b=TITLES["whole_prompt"])
    assert not app.exception
    assert len(app.error) == 1
    assert "takes prompts whole" in app.error[0].value


def test_capacity_words_of_nothing_that_holds():
    asked = setup(itl_target_ms=1e-3)
    chosen = targets_of(asked)[1]
    none = Capacity(targets=chosen, relative_precision=0.05, points=(), highest=None, failing=None)
    assert capacity_words({(chosen, 128): none}, chosen) == [
        "No rate holds a P99 ITL of 0.001 ms at any chunk size."
    ]


def found_rate(targets, rate_per_s, *, requests=10_000):
    """A search's outcome that holds just this rate; the other figures do not matter."""
    point = RatePoint(
        rate_per_s=rate_per_s,
        request_count=requests,
        itl_p99_ms=1.0,
        scheduling_delay_p50_ms=1.0,
        ttft_p50_ms=1.0,
        ttft_p99_ms=1.0,
        slo_attainment=1.0,
        goodput_per_s=rate_per_s,
        requests_per_s=rate_per_s,
        never_served=0,
        rejected=0,
        stopped_at_max_steps=False,
    )
    return Capacity(
        targets=targets, relative_precision=0.05, points=(point,), highest=point, failing=None
    )


def test_capacity_words_name_the_best_sizes_and_what_is_as_good():
    tight, chosen, _ = targets_of(setup())
    found = {
        (tight, 256): found_rate(tight, 6.0),
        (tight, 1024): found_rate(tight, 1.0),
        (chosen, 256): found_rate(chosen, 6.0),
        (chosen, 1024): found_rate(chosen, 9.0),
        (chosen, 2048): found_rate(chosen, 8.9),
    }
    first, second, last = capacity_words(found, chosen)
    assert "50 ms holds at the highest rate, 9.0" in first
    assert "with chunks of 1,024 tokens (as good as: 2,048)" in first
    assert "25 ms holds at the highest rate, 6.0" in second
    assert last == "The best chunk size is a property of the targets."
    same = {(targets, 256): found_rate(targets, 5.0) for targets in (tight, chosen)}
    assert len(capacity_words(same, chosen)) == 2  # nothing to say of a difference
    # 2 x 2 s x 5 per s / 0.05 = 400 requests show an overload of 5%.
    few = {(chosen, 256): found_rate(chosen, 5.0, requests=399)}
    assert "takes 400 requests" in capacity_words(few, chosen)[1]


# What leaves the page


def test_files_are_made_when_they_are_asked_for(page):
    app = page(**SMALL)
    assert [button.proto.label for button in app.get("download_button")] == [
        "Report of both as HTML"
    ]
    asked = setup()
    run = traffic_runs.run(asked)
    for name in ("requests", "steps"):
        rows = getattr(run.result, name)
        text = traffic_take_away._written(to_csv, run, name)
        assert isinstance(text, str)
        assert text.count("\n") == len(rows) + 1
        packed = traffic_take_away._written(to_parquet, run, name)
        assert isinstance(packed, bytes)
        frame = pandas.read_parquet(io.BytesIO(packed))
        assert len(frame) == len(rows)


# What is kept


def test_other_targets_need_no_other_run():
    asked = setup()
    first, second = (
        traffic_runs.run(one) for one in (asked, setup(ttft_target_ms=1.0, itl_target_ms=1.0))
    )
    assert first.result is second.result
    assert first.experiment.itl_target_ms == 50.0
    assert second.metrics.slo_attainment == 0.0


def test_slo_adaptive_runs_anew_for_another_target():
    side = Side(policy="slo_adaptive", chunk_tokens=512)
    assert setup(side=side).run_key != setup(side=side, itl_target_ms=20.0).run_key


def test_what_is_kept_is_bounded_by_size():
    kept = Kept(size_of=len, most=10)
    for name in "abc":
        kept.get(name, partial(mul, name, 4))
    assert [kept.found(name) for name in "abc"] == [None, "bbbb", "cccc"]
    kept.found("b")  # used again: the other goes first
    kept.get("d", lambda: "dddd")
    assert [kept.found(name) for name in "bcd"] == ["bbbb", None, "dddd"]
    kept.get("e", lambda: "e" * 99)  # larger than all: it alone stays
    assert [kept.found(name) for name in "bde"] == [None, None, "e" * 99]


def test_who_asks_for_what_is_being_made_waits_for_it():
    kept, begun, go_on, made = Kept(size_of=len, most=10), threading.Event(), threading.Event(), []

    def make():
        made.append(1)
        begun.set()
        go_on.wait(10)
        return "value"

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(kept.get("key", make))) for _ in range(5)
    ]
    threads[0].start()
    assert begun.wait(10)
    for thread in threads[1:]:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert (found, made) == (["value"] * 5, [1])


def test_a_failed_making_is_not_kept():
    kept = Kept(size_of=len, most=10)
    with pytest.raises(ValueError, match="no"):
        kept.get("key", lambda: (_ for _ in ()).throw(ValueError("no")))
    assert kept.get("key", lambda: "value") == "value"
