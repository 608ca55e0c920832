"""What the timeline shows, against arithmetic by hand on the chapter's scenario.

Decode-only step: 4 + 24 x 0.05 = 5.2 ms. 1,024-token chunk: 5.2 + 18.432 = 23.632 ms. Whole
prompt: 5.2 + 8,192 x 0.018 = 152.656 ms. Two lead-in steps, three in the tail.
"""

from dataclasses import replace

import numpy as np
import pytest

from s11 import EngineLimits, Experiment, LinearCost, Request, Workload, chapter_scenario, measure
from s11.explain import explain
from s11.figures.timeline_info import MOST_STEPS, Axis, TimelineInfo, timeline_info
from s11.simulator import simulate

CHAPTER = Experiment()
STEP, CHUNK, WHOLE = 5.2, 23.632, 152.656


def info_of(experiment: Experiment, **view: object) -> TimelineInfo:
    result, whole = simulate(experiment), simulate(experiment.chunking_off())
    target = experiment.itl_target_ms
    explanation = explain(
        experiment,
        result,
        measure(result, itl_target_ms=target),
        whole=measure(whole, itl_target_ms=target),
    )
    return timeline_info(experiment, result, explanation, whole=whole, **view)  # type: ignore[arg-type]


def test_steps_stand_side_by_side_with_their_three_costs():
    steps = info_of(CHAPTER).steps
    durations = [STEP] * 2 + [CHUNK] * 8 + [STEP] * 3
    assert steps.width.tolist() == pytest.approx(durations)
    assert steps.left.tolist() == pytest.approx([0, *np.cumsum(durations)[:-1]])
    assert steps.prefill_ms.tolist() == pytest.approx([0] * 2 + [18.432] * 8 + [0] * 3)
    assert steps.decode_ms.tolist() == pytest.approx([1.2] * 13)
    assert steps.fixed_ms.tolist() == [4.0] * 13
    assert steps.number.tolist() == list(range(1, 14))
    assert not steps.over_target.any()


def test_by_step_every_step_is_one_wide():
    info = info_of(CHAPTER, axis=Axis.STEP)
    assert info.steps.left.tolist() == list(range(13))
    assert info.steps.width.tolist() == [1.0] * 13
    prompt = info.prompts[0]
    assert (prompt.arrival, prompt.first_token) == (2, 10)
    assert info.token_marks.tolist() == list(range(14))


def test_prompt_row_has_its_chunks_and_its_wait():
    prompt = info_of(CHAPTER).prompts[0]
    assert prompt.chunk_tokens.tolist() == [1024] * 8
    assert prompt.arrival == pytest.approx(2 * STEP)
    assert prompt.first_token == pytest.approx(2 * STEP + 8 * CHUNK)
    assert prompt.ttft_ms == pytest.approx(189.056)


def test_last_chunk_is_what_is_left():
    prompt = info_of(CHAPTER.with_chunk_tokens(1000)).prompts[0]
    assert prompt.chunk_tokens.tolist() == [1000] * 8 + [192]


def test_ghost_is_the_whole_prompt_step():
    ghost = info_of(CHAPTER).ghost
    assert ghost is not None
    assert ghost.left == pytest.approx(2 * STEP)
    assert ghost.right == pytest.approx(2 * STEP + WHOLE)
    assert ghost.height_ms == pytest.approx(WHOLE)


@pytest.mark.parametrize(
    "experiment", [CHAPTER.chunking_off(), CHAPTER.with_chunk_tokens(8192)], ids=["off", "equal"]
)
def test_no_ghost_behind_its_own_picture(experiment: Experiment):
    assert info_of(experiment).ghost is None


def test_freeze_is_the_gap_that_users_feel():
    freezes = info_of(CHAPTER.chunking_off()).freezes
    assert freezes.left.tolist() == pytest.approx([2 * STEP])
    assert freezes.width.tolist() == pytest.approx([WHOLE])
    assert freezes.gap_ms.tolist() == pytest.approx([WHOLE])


def test_nobody_freezes_where_nobody_streams():
    alone = replace(CHAPTER, workload=chapter_scenario(streaming_users=0)).chunking_off()
    info = info_of(alone)
    assert len(info.freezes.left) == 0
    assert info.steps.over_target.tolist() == [True]


def test_axes_hold_still_while_the_chunk_moves():
    # Whole run: 10.4 + 152.656 + 15.6 = 178.656 ms, a quarter to spare: 223.32.
    # At 512 tokens: 10.4 + 147.456 + 16 x 5.2 + 15.6 = 256.656: stretched once.
    for chunk, end in ((1024, 223.32), (4096, 223.32), (8192, 223.32), (512, 334.98)):
        info = info_of(CHAPTER.with_chunk_tokens(chunk))
        assert info.right_end == pytest.approx(end)
        assert info.top_ms == pytest.approx(1.18 * WHOLE)


def test_axes_of_chunking_off_are_those_of_chunks():
    on, off = info_of(CHAPTER), info_of(CHAPTER.chunking_off())
    assert (on.right_end, on.top_ms) == (off.right_end, off.top_ms)


def test_zoom_shows_twice_the_target():
    assert info_of(CHAPTER, zoom_on_target=True).top_ms == 100.0


def test_target_above_every_step_is_in_the_picture():
    assert info_of(replace(CHAPTER, itl_target_ms=400.0)).top_ms > 400


def test_thousands_of_steps_keep_every_spike():
    # A first token and 4,999 decodes, 1 ms each; one of them carries 500 prompt tokens: 501 ms.
    many = Experiment(
        workload=Workload(
            requests=(
                Request(request_id="long answer", prompt_tokens=1, output_tokens=5_000),
                Request(request_id="spike", prompt_tokens=500, arrival_ms=2_500),
            )
        ),
        limits=EngineLimits(chunk_tokens=500),
        cost=LinearCost(fixed_ms=1.0, prefill_ms_per_token=1.0, decode_ms_per_token=0.0),
    )
    info = info_of(many)
    assert info.steps.steps_per_mark == 5
    assert len(info.steps.left) == MOST_STEPS
    assert info.steps.duration_ms.max() == 501
    assert info.steps.left[0] == 0
    # 4,998 plain steps, the first (1 + 1 ms) and the spike.
    assert info.steps.left[-1] + info.steps.width[-1] == pytest.approx(4_998 + 2 + 501)


def test_never_scheduled_prompt_has_no_first_token():
    experiment = Experiment(
        workload=chapter_scenario(prompt_tokens=32_768), limits=EngineLimits(token_budget=8192)
    ).chunking_off()
    info = info_of(experiment)
    prompt = info.prompts[0]
    assert info.never_scheduled
    assert (prompt.first_token, prompt.ttft_ms, len(prompt.chunk_left)) == (None, None, 0)
    assert prompt.arrival == pytest.approx(2 * STEP)


def test_caption_names_every_parameter_with_its_unit():
    info = info_of(replace(CHAPTER, limits=EngineLimits(token_budget=2048, chunk_tokens=1000)))
    assert info.caption == [
        "8,192-token prompt, 1,000-token chunks, 24 streaming users, budget 2,048",
        "step = 4 + 0.018·prefill + 0.05·decode ms, target 50 ms, s11",
    ]


def test_title_is_the_finding():
    assert info_of(CHAPTER).title == "No stream waits over 50 ms"
    assert info_of(CHAPTER.chunking_off()).title == "A 153 ms freeze for 24 streams"


def test_many_prompts_are_folded_and_counted():
    requests = tuple(Request(request_id=str(n), prompt_tokens=100) for n in range(7))
    info = info_of(replace(CHAPTER, workload=Workload(requests=requests, streaming_users=2)))
    assert [row.request_id for row in info.prompts] == ["0", "1", "2", "3"]
    assert info.folded_prompts == 3


def test_the_kv_of_a_handed_over_prompt_travels_until_its_first_token() -> None:
    """Lead-in 10.4 ms, eight chunks of 22.432 ms alone: 189.856 ms; the star 22.475 ms later.
    Chunks are the prefill worker's, laid on the decode worker's clock."""
    (row,) = info_of(Experiment(policy="disaggregated")).prompts
    assert row.handed_over_from == pytest.approx(189.856)
    assert row.first_token == pytest.approx(189.856 + 8192 * 131_072 / 50e9 * 1000 + 1)
    assert row.chunk_width.tolist() == pytest.approx([22.432] * 8)
    by_step = info_of(Experiment(policy="disaggregated"), axis=Axis.STEP).prompts[0]
    # A step of the decode worker is 5.2 ms.
    assert by_step.handed_over_from == pytest.approx(189.856 / 5.2)


def test_streams_freeze_over_all_the_steps_that_they_stand_still_in() -> None:
    """SGLang: from the lead-in's end at 10.4 ms over eight chunks and a decode step."""
    frozen = info_of(Experiment(policy="sglang")).freezes
    assert frozen.left.tolist() == pytest.approx([10.4])
    assert frozen.width.tolist() == frozen.gap_ms.tolist() == pytest.approx([184.656])


def test_with_another_schedulers_name_the_caption_takes_two_lines_that_fit_a_phone() -> None:
    limits = EngineLimits(chunk_tokens=131_072, token_budget=2_048)
    caption = info_of(Experiment(policy="vllm_v1", limits=limits)).caption
    assert caption[0] == "8,192-token prompt, chunks of up to 2,024 tokens"
    assert caption[1] == "24 streaming users, vLLM V1, budget 2,048"
    assert len(caption) == 3
    assert len(info_of(CHAPTER).caption) == 2
