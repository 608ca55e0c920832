import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from s11 import Experiment, Request, Workload, simulate
from s11.bench_results import read_bench_results, to_workload
from s11.metrics import measure, percentile
from s11.overlay import PERCENTS, LargestGap, Overlay, Parting, overlay, overlay_run

from .test_bench_results import text_of

HUNDRED = np.arange(1.0, 101.0)  # percentile P is P ms


def laid(measured: NDArray[np.float64], simulated: NDArray[np.float64], **more: Any) -> Overlay:
    return overlay(measured, simulated, name="ITL", **more)


def test_the_distributions_are_steps_that_reach_one() -> None:
    both = laid(
        np.array([30.0, 10.0, 10.0, 20.0]),
        np.array([5.0, 10.0, 40.0]),
        simulated_weights=np.array([0, 3, 1]),
    )
    assert both.measured.value_ms.tolist() == [10, 20, 30]
    assert both.measured.tokens.tolist() == [2, 1, 1]
    assert both.measured.share.tolist() == [0.5, 0.75, 1]
    assert both.simulated.value_ms.tolist() == [10, 40]  # nobody saw the 5 ms
    assert both.simulated.share.tolist() == [0.75, 1]
    assert (both.measured.median_ms, both.measured.p99_ms) == (10, 30)
    assert (both.simulated.median_ms, both.simulated.p99_ms) == (10, 40)
    assert both.median_ratio == 1
    assert both.p99_ratio == pytest.approx(4 / 3)


def test_the_largest_gap_is_where_the_shares_differ_most() -> None:
    # shares at 10, 20, 30, 40: measured .5 .75 1 1, simulated 0 .25 .25 1
    both = laid(np.array([10.0, 10.0, 20.0, 30.0]), np.array([20.0, 40.0, 40.0, 40.0]))
    assert both.largest_gap == LargestGap(
        distance=0.75, value_ms=30.0, measured_share=1.0, simulated_share=0.25
    )


def test_distributions_that_do_not_touch_are_one_apart() -> None:
    assert laid(np.array([1.0, 2.0]), np.array([3.0, 4.0])).largest_gap.distance == 1
    assert laid(HUNDRED, HUNDRED).largest_gap.distance == 0


latencies = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 2.0, 50.0]) | st.floats(0, 1e6), st.integers(0, 1000)),
    min_size=1,
    max_size=30,
).filter(lambda rows: any(weight for _, weight in rows))


@given(latencies, latencies)
def test_percentiles_and_distance_are_those_of_the_long_way(
    real: list[tuple[float, int]], model: list[tuple[float, int]]
) -> None:
    (real_ms, real_tokens), (model_ms, model_tokens) = (
        (np.array([ms for ms, _ in rows]), np.array([weight for _, weight in rows]))
        for rows in (real, model)
    )
    both = laid(real_ms, model_ms, measured_weights=real_tokens, simulated_weights=model_tokens)
    for percent, value_ms in zip(PERCENTS, both.simulated_ms.tolist(), strict=True):
        share = Fraction(percent, 100)
        assert value_ms == percentile(model_ms, share, weights=model_tokens)
    assert both.measured.p99_ms == both.measured_ms[98]
    distance = max(
        abs(
            Fraction(int(real_tokens[real_ms <= ms].sum()), int(real_tokens.sum()))
            - Fraction(int(model_tokens[model_ms <= ms].sum()), int(model_tokens.sum()))
        )
        for ms in [*real_ms, *model_ms]
    )
    assert both.largest_gap.distance == pytest.approx(float(distance), abs=1e-12)
    apart = np.abs(both.simulated_ms - both.measured_ms) > 0.15 * both.measured_ms
    told = np.zeros(99, dtype=bool)
    for parting in both.partings:
        told[parting.first_percent - 1 : parting.last_percent] = True
    assert (told == apart).all()


def scaled(percents: range, factor: float) -> NDArray[np.float64]:
    return np.where(np.isin(HUNDRED, percents), HUNDRED * factor, HUNDRED)


def test_the_part_above_a_percentile() -> None:
    both = laid(HUNDRED, scaled(range(81, 101), 2.0))
    assert both.partings == (
        Parting(
            first_percent=81,
            last_percent=99,
            longer=True,
            measured_ms=(81.0, 99.0),
            simulated_ms=(162.0, 198.0),
            factor=2.0,
        ),
    )
    assert both.sentence == (
        "The simulated ITLs keep within 15% of the measured ones up to P80; they are longer from "
        "P81 to P99 (up to 2.0×): median ITL 50 ms against 50 ms measured, P99 198 ms against "
        "99 ms."
    )


def test_a_factor_is_the_largest_of_its_run_wherever_it_stands() -> None:
    middle = np.where(HUNDRED == 50, 3.0, np.where((HUNDRED > 40) & (HUNDRED < 60), 1.3, 1.0))
    both = laid(HUNDRED, HUNDRED * middle)
    (parting,) = [p for p in both.partings if p.longer and p.first_percent <= 50 <= p.last_percent]
    places = np.arange(parting.first_percent - 1, parting.last_percent)
    assert parting.factor == (both.simulated_ms / both.measured_ms)[places].max()
    assert f"({parting.factor_told})" in both.sentence
    nothing = laid(np.where(HUNDRED < 11, 0.0, HUNDRED), HUNDRED)
    assert nothing.partings[0].factor is None
    assert "they are longer from P1 to P10: " in nothing.sentence


def test_partings_on_one_side_are_told_at_once_and_further_ones_counted() -> None:
    def apart(blocks: int) -> str:
        """Blocks of ten percentiles, ten times longer each; every second one is halved."""
        measured = np.repeat([10.0**block for block in range(10)], 10)
        halved = np.repeat(np.arange(10) % 2 == 1, 10) & (20 * blocks >= HUNDRED)
        return laid(measured, np.where(halved, measured / 2, measured)).sentence

    assert (
        "they are shorter from P11 to P20 (up to 2.0×) and from P31 to P40 (up to 2.0×): "
        in apart(2)
    )
    assert "(up to 2.0×) (and in 1 more place): " in apart(3)
    assert "(up to 2.0×) (and in 2 more places): " in apart(4)


@pytest.mark.parametrize(
    ("simulated", "start"),
    [
        (
            HUNDRED * 1.1,
            "The simulated ITLs keep within 15% of the measured ones at every percentile from P1 "
            "to P99: median ITL 55 ms against 50 ms measured, P99 109 ms against 99 ms.",
        ),
        (
            HUNDRED / 4,
            "The simulated ITLs are more than 15% off at every percentile; they are shorter from "
            "P1 to P99 (up to 4.0×): ",
        ),
        (
            scaled(range(1, 21), 0.5),
            "The simulated ITLs keep within 15% of the measured ones from P21 on; they are shorter "
            "from P1 to P20 (up to 2.0×): ",
        ),
        (
            np.where(HUNDRED == 50, 60, HUNDRED),  # P50 to P59 are 51 … 60, all within 15%
            "The simulated ITLs keep within 15% of the measured ones at every percentile",
        ),
        (
            np.where((HUNDRED > 40) & (HUNDRED < 60), 40, HUNDRED),  # 40 is 15% below 47.06
            "The simulated ITLs keep within 15% of the measured ones at 87 of 99 percentiles; they "
            "are shorter from P48 to P59 (up to 1.5×): ",
        ),
        (
            np.where(HUNDRED < 11, HUNDRED / 2, np.where(HUNDRED > 90, 200, HUNDRED)),
            "The simulated ITLs keep within 15% of the measured ones at 80 of 99 percentiles; they "
            "are shorter from P1 to P10 (up to 2.0×) and longer from P91 to P99 (up to 2.2×): ",
        ),
    ],
)
def test_the_sentence_is_true_of_where_they_part(
    simulated: NDArray[np.float64], start: str
) -> None:
    assert laid(HUNDRED, simulated).sentence.startswith(start)


def test_a_measured_time_of_nothing_has_no_ratio() -> None:
    both = laid(np.array([0.0, 0.0]), np.array([1.0, 1.0]))
    assert (both.median_ratio, both.p99_ratio) == (None, None)
    assert both.sentence.startswith("The simulated ITLs are more than 15% off at every percentile")
    assert "×" not in both.sentence


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"measured": []}, "measured: no latency to lay over the other"),
        ({"simulated": []}, "simulated: no latency to lay over the other"),
        ({"simulated_weights": [0, 0]}, "simulated: no latency to lay over the other"),
        ({"simulated_weights": [1]}, "simulated: the weights are not a whole number for each"),
        ({"measured_weights": [0.5, 1.0]}, "measured: the weights are not a whole number for"),
        ({"measured_weights": [-1, 1]}, "measured: a weight of -1"),
        ({"measured": [1.0, float("nan")]}, "measured: a latency that is negative or no number"),
        ({"measured": [1.0, float("inf")]}, "measured: a latency that is negative or no number"),
        ({"simulated": [1.0, -1.0]}, "simulated: a latency that is negative or no number"),
        ({"tolerance_pct": 0}, "tolerance_pct: 0 is not a number above 0 to 1000"),
        ({"tolerance_pct": float("nan")}, "tolerance_pct: nan is not a number above 0"),
    ],
)
def test_what_cannot_be_laid_over_is_refused(changed: dict[str, Any], message: str) -> None:
    arrays = {
        name: np.array(value) if isinstance(value, list) else value
        for name, value in ({"measured": [1.0, 2.0], "simulated": [1.0, 2.0]} | changed).items()
    }
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        laid(**arrays)


def test_a_benchmark_and_its_simulation() -> None:
    results = read_bench_results(text_of())
    experiment = Experiment(workload=to_workload(results))
    result = simulate(experiment)
    ttft, itl = overlay_run(results, result)
    metrics = measure(result, itl_target_ms=50.0)
    assert ttft is not None
    assert itl is not None
    assert (ttft.name, itl.name) == ("TTFT", "ITL")
    assert ttft.measured.value_ms.tolist() == [250, 500]
    assert itl.measured.value_ms.tolist() == [0, 20, 30, 40]
    assert ttft.simulated.median_ms == metrics.ttft_p50_ms
    assert itl.simulated.median_ms == metrics.itl_p50_ms
    assert itl.simulated.tokens.sum() == (3 - 1) + (4 - 1)


def test_where_nothing_decodes_there_are_no_itls_to_lay_over() -> None:
    results = read_bench_results(text_of(itls=[[], [], [], []]))
    one = Workload(requests=(Request(request_id="a", prompt_tokens=100),))
    ttft, itl = overlay_run(results, simulate(Experiment(workload=one)))
    assert ttft is not None
    assert itl is None
