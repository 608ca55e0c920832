import pytest

from benchmarks import peers
from s11 import Experiment, bench, simulate
from s11.arrivals import PoissonArrivals
from s11.traffic_presets import TRAFFIC_PRESETS
from tests.loads import load, request


def test_the_loads_are_the_chapters_scenario_and_the_same_traffic_with_and_without_memory() -> None:
    *_, chapter, traffic, pressed, cached, on_h100 = (one for one, _ in bench.loads().values())
    assert chapter == Experiment()
    assert len(traffic.workload.requests) == 2000
    assert len(simulate(chapter).steps) == 13
    assert pressed.workload == cached.workload == traffic.workload
    assert (traffic.limits.kv_blocks, traffic.limits.prefix_caching) == (None, False)
    assert (pressed.limits.kv_blocks, pressed.limits.prefix_caching) == (3000, False)
    assert (cached.limits.kv_blocks, cached.limits.prefix_caching) == (3000, True)
    assert len(simulate(pressed).preemptions) > 0
    assert (on_h100.workload, on_h100.limits) == (traffic.workload, traffic.limits)
    assert on_h100.cost.name == "roofline"


def test_the_traffic_has_the_rate_and_the_medians_it_names() -> None:
    """6.45 requests a second; e^6.93 = 1,022 prompt and e^4.86 = 129 output tokens."""
    requests = bench.poisson_requests(request_count=4000, rate_per_s=6.45, seed=5).requests
    assert requests[-1].arrival_ms == pytest.approx(4000 / 6.45 * 1000, rel=0.06)
    prompts = sorted(r.prompt_tokens for r in requests)
    outputs = sorted(r.output_tokens for r in requests)
    assert prompts[2000] == pytest.approx(1022, rel=0.08)
    assert outputs[2000] == pytest.approx(129, rel=0.08)


def test_time_is_measured_in_loops_timed_in_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock by hand: a loop takes 2 s, a turn of the load 3 s, and reading it 1 s."""
    now = 0.0

    def calibrate() -> None:
        nonlocal now
        now += 2

    def run(_: Experiment) -> object:
        nonlocal now
        now += 3
        return simulate(tiny)

    def read(_: object) -> None:
        nonlocal now
        now += 1

    tiny = load(request("a", 9), chunk=3)
    monkeypatch.setattr(bench, "calibrate", calibrate)
    monkeypatch.setattr(bench, "simulate", run)
    monkeypatch.setattr(bench, "read_tables", read)
    monkeypatch.setattr(bench, "loads", lambda: {"tiny": (tiny, 4)})
    monkeypatch.setattr("time.process_time", lambda: now)
    told: list[tuple[int, int]] = []
    measured = bench.measure_loads(progress=lambda *done: told.append(done))
    assert measured["calibration_s"] == 2
    assert measured["loads"] == [
        {
            "load": "tiny",
            "runs": 4,
            "steps": 12,
            "cpu_s": 12,
            "ratio": 6,
            "all_read_ratio": 8,
            "steps_per_s_at_reference": pytest.approx(12 / (6 * 0.138)),
        }
    ]
    assert told == [(n, 7) for n in range(1, 8)]


def test_the_reference_work_is_the_public_traces_number_of_requests_at_four_rates() -> None:
    """19,366 requests, 6.45 a second, a cost that counts cached tokens, 128 seats, budget 512."""
    plain, all_on, *at_rates = (one for one, _ in list(bench.loads().values())[:5])
    assert len(plain.workload.requests) == 19_366
    prompts = sorted(r.prompt_tokens for r in plain.workload.requests)
    outputs = sorted(r.output_tokens for r in plain.workload.requests)
    assert prompts[9_683] == pytest.approx(1_020, rel=0.03)  # the trace's medians
    assert outputs[9_683] == pytest.approx(129, rel=0.03)
    assert (plain.limits.token_budget, plain.limits.max_seqs) == (512, 128)
    assert plain.cost.counts_only is False
    assert plain.limits.kv_blocks is None
    assert all_on.limits.kv_blocks == 8_000
    for experiment, rate_per_s in zip(at_rates, (1, 8.5, 12), strict=True):
        requests = experiment.workload.requests
        lengths = [(r.prompt_tokens, r.output_tokens) for r in requests]
        assert lengths == [(r.prompt_tokens, r.output_tokens) for r in plain.workload.requests]
        slower = 6.45 / rate_per_s
        last_ms = plain.workload.requests[-1].arrival_ms
        assert requests[-1].arrival_ms == pytest.approx(last_ms * slower)


def test_reading_all_leaves_no_column_to_be_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    result = simulate(load(request("a", 9), chunk=3))
    bench.read_tables(result)

    def late(*_: object) -> None:
        raise AssertionError

    for table in (result.steps, result.slices, result.requests, result.admissions, result.spans):
        monkeypatch.setattr(type(table), "__getattr__", late)
        assert len(table.columns())


def test_peak_memory_is_more_than_numpy_needs() -> None:
    """NumPy's libraries alone map some ten megabytes."""
    peak = bench.peak_memory_bytes()
    assert peak is not None
    assert peak > 10 * 2**20


def test_three_simulators_of_the_reference_work_agree_to_the_bit() -> None:
    """One with an object per decode, one with counts alone, and the engine: 300 requests."""
    preset = TRAFFIC_PRESETS["azure-conv-2023"]
    for rate_per_s in (2.0, 12.0):
        arrivals = PoissonArrivals(rate_per_s=rate_per_s)
        workload = preset.traffic(request_count=300, arrivals=arrivals).workload()
        assert len({way(workload) for way in peers.WAYS.values()}) == 1
