"""The scenes: their schedules from the sources they cite, and what each is there to show."""

import numpy as np
import pytest

from s11 import EngineLimits, Experiment, measure, simulate
from s11.comparison import same_schedule
from s11.entries import Entry, entry_labels, knob_words
from s11.presets import PRESETS
from s11.results import Result
from s11.scenes import FIGURE_7, KV_PRESSURE, SCENES, SHARED_PREFIX, Scene


def results(scene: Scene) -> list[Result]:
    return [simulate(experiment) for experiment in scene.experiments()]


def steps(result: Result, first: int, last: int) -> list[dict[str, int]]:
    return list(result.schedule())[first:last]


@pytest.mark.parametrize("scene", SCENES.values(), ids=list(SCENES))
def test_scene_is_small_served_and_says_what_it_shows(scene: Scene):
    assert 2 <= len(scene.entries) <= 4
    assert len(scene.common.workload.requests) <= 12
    assert scene.about.endswith(".")
    for result in results(scene):
        assert not result.never_scheduled
        assert not np.isnan(result.requests.last_token_ms).any()
        assert len(result.steps) < 300


def test_figure_7_is_the_papers():
    """After the prompts of A and B: Sarathi-Serve, Figure 7, with A wanting 3 decodes, B 7."""
    request_level, prefill_first, whole_prompt, chunked = results(FIGURE_7)
    both, whole = {"A": 1, "B": 1}, {"C": 1024, "D": 1024}
    assert steps(request_level, 1, 9) == [both] * 3 + [{"B": 1}] * 4 + [whole]
    everyone = {"A": 1, "B": 1, "C": 1, "D": 1}
    assert steps(prefill_first, 1, 5) == [both, {"C": 1024}, {"D": 1024}, everyone]
    assert steps(whole_prompt, 1, 4) == [both, both | whole, everyone]
    assert steps(chunked, 1, 5) == [
        both,
        both | {"C": 512},
        both | {"C": 512},
        {"B": 1, "C": 1, "D": 512},
    ]


def test_default_scene_tells_chunked_from_vllm():
    assert next(iter(SCENES.values())) is KV_PRESSURE
    assert [entry.engine for entry in KV_PRESSURE.entries] == ["chunked", "vllm_v1"]
    chunked, vllm = results(KV_PRESSURE)
    assert not same_schedule(chunked, vllm)
    assert {name for ids in chunked.preempted().values() for name in ids} == {"report"}
    assert {name for ids in vllm.preempted().values() for name in ids} == {"chat 3"}


def test_monopoly_ends_with_the_cap():
    scene = SCENES["budget-monopoly"]
    off, capped = results(scene)
    row = off.requests.request_id.index("short")
    # Off: each step gives the long prompt all that the chat's decode leaves of 2,048 tokens.
    long_steps = off.slices.tokens[off.slices.request == off.requests.request_id.index("long")]
    assert set(long_steps[:-1].tolist()) == {2047}
    # Capped: the step that runs when it arrives, at 500 ms, takes 4 + 0.018·1024 + 0.05 ms.
    waited = capped.requests.first_scheduled_ms[row] - 500.0
    assert 0 <= waited <= 4 + 0.018 * 1024 + 0.05
    assert off.requests.first_scheduled_ms[row] - 500.0 > 2000


def test_shared_prefix_is_found_by_all_but_the_first():
    cached = [
        measure(result, itl_target_ms=50.0).cached_tokens for result in results(SHARED_PREFIX)
    ]
    assert cached == [0, 4 * 6144, 0, 4 * 6144]  # 6,144 is 384 whole blocks


def test_starvation_holds_the_chats_as_long_as_prompts_come():
    prefill_first, _, chunked = results(SCENES["starvation"])
    # Five prompts of 8,192 tokens, a step each, and the chats' own first decode after them.
    held = prefill_first.steps.held_decodes > 0
    assert held.sum() == 5
    assert np.diff(np.flatnonzero(held)).tolist() == [1, 1, 1, 1]
    assert not chunked.steps.held_decodes.any()


def test_entry_has_its_own_knobs_upon_the_common_ones():
    common = Experiment(limits=EngineLimits(token_budget=2048, chunk_tokens=512))
    mine = Entry(engine="vllm_v1", changes=(("chunk_tokens", None),)).of(common)
    assert (mine.policy, mine.limits) == (
        "vllm_v1",
        EngineLimits(token_budget=2048, chunk_tokens=None),
    )


def test_preset_entry_keeps_only_the_memory_of_the_common_knobs():
    common = Experiment(limits=EngineLimits(kv_blocks=288, token_budget=77))
    mine = Entry(engine="vllm-2k").of(common)
    assert mine.policy == "vllm_v1"
    assert mine.limits.kv_blocks == 288
    assert mine.limits.token_budget == PRESETS["vllm-2k"].limits.token_budget == 2048


def test_disaggregated_entry_of_a_load_with_kv_blocks_is_refused():
    common = Experiment(limits=EngineLimits(kv_blocks=288))
    with pytest.raises(ValueError, match="kv_blocks: 288"):
        Entry(engine="disaggregated").of(common)


@pytest.mark.parametrize(
    ("engine", "changes", "said"),
    [
        ("orca", (), "engine: 'orca' is not one of"),
        ("chunked", (("speed", 3),), "knob: 'speed' is not one of"),
        ("chunked", (("token_budget", 3), ("token_budget", 4)), "given twice"),
    ],
)
def test_unknown_entry_is_refused(engine: str, changes: tuple[tuple[str, int], ...], said: str):
    with pytest.raises(ValueError, match=said):
        Entry(engine=engine, changes=changes)


def test_entry_gains_and_loses_knobs():
    entry = Entry(engine="sglang").changed(chunk_tokens=4096).changed(mixed=True)
    assert entry.changes == (("chunk_tokens", 4096), ("mixed", True))
    assert entry.without("chunk_tokens").changes == (("mixed", True),)


def test_labels_name_what_tells_entries_of_one_engine_apart():
    plain = Entry(engine="vllm_v1")
    capped = plain.changed(chunk_tokens=1024, token_budget=2048)
    off = plain.changed(chunk_tokens=None, token_budget=2048)
    assert entry_labels([capped, off]) == ["vLLM V1, cap 1,024", "vLLM V1, no cap"]
    assert entry_labels([plain, plain.changed(prefix_caching=True)]) == [
        "vLLM V1, common caching",
        "vLLM V1, caching on",
    ]
    sglang = Entry(engine="sglang").changed(mixed=True)
    assert entry_labels([sglang, plain]) == ["SGLang", "vLLM V1"]


@pytest.mark.parametrize(
    ("knob", "value", "words"),
    [
        ("token_budget", 2048, "budget 2,048"),
        ("token_budget", None, "no budget"),
        ("max_seqs", 1, "1 seat"),
        ("kv_blocks", 288, "288 KV blocks"),
        ("kv_blocks", None, "ample KV"),
        ("prefix_caching", False, "caching off"),
        ("block_size", 16, "block 16"),
    ],
)
def test_knobs_in_words(knob: str, value: int | None, words: str):
    assert knob_words(knob, value) == words
