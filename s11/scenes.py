"""Six small loads on which real engines' schedulers differ, and the engines to see them with."""

from __future__ import annotations

from dataclasses import dataclass

from s11.entries import Entry
from s11.experiment import Experiment
from s11.plan import EngineLimits
from s11.workload import Request, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A load, the knobs that all engines have in common, and the engines shown first.

    slug: its name in a link.
    title: its name on the page.
    about: what happens, in a sentence or two.
    common: the load, the common limits, the cost model and the ITL target.
    entries: two to four engines.
    """

    slug: str
    title: str
    about: str
    common: Experiment
    entries: tuple[Entry, ...]

    def experiments(self) -> list[Experiment]:
        """Return the load on each of the engines."""
        return [entry.of(self.common) for entry in self.entries]


def _common(*requests: Request, target_ms: float, limits: EngineLimits | None = None) -> Experiment:
    return Experiment(
        workload=Workload(requests=requests),
        limits=limits or EngineLimits(chunk_tokens=None),
        itl_target_ms=target_ms,
    )


def _request(
    name: str,
    prompt_tokens: int,
    output_tokens: int,
    *,
    at: float = 0.0,
    shared: tuple[str, int] | None = None,
) -> Request:
    group, tokens = shared or (None, 0)
    return Request(
        request_id=name,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        arrival_ms=at,
        shared_group=group,
        shared_tokens=tokens,
    )


KV_PRESSURE = Scene(
    slug="kv-pressure",
    title="KV pressure",
    about=(
        "288 KV blocks do not hold a 3,584-token report and three chats. Chunked serves the "
        "decodes first and preempts the report; vLLM V1 goes by the order of admission and "
        "preempts the chat that came last."
    ),
    common=_common(
        _request("report", 3584, 10),
        _request("chat 1", 480, 24),
        _request("chat 2", 480, 24, at=30.0),
        _request("chat 3", 240, 16, at=60.0),
        target_ms=50.0,
        limits=EngineLimits(token_budget=1024, chunk_tokens=512, max_seqs=8, kv_blocks=288),
    ),
    entries=(Entry(engine="chunked"), Entry(engine="vllm_v1")),
)

FIGURE_7 = Scene(
    slug="figure-7",
    title="Figure 7",
    about=(
        "Sarathi-Serve's Figure 7: A and B are decoding when C and D arrive with 1,024-token "
        "prompts. Request level lets them wait for A and B to end, prefill first stops A and B for "
        "them, whole prompts makes one long step of all, and chunked cuts each prompt in half."
    ),
    common=_common(
        _request("A", 64, 4),
        _request("B", 64, 8),
        _request("C", 1024, 4, at=8.0),
        _request("D", 1024, 4, at=8.0),
        target_ms=20.0,
    ),
    entries=(
        Entry(engine="request_level"),
        Entry(engine="prefill_first", changes=(("token_budget", 1024),)),
        Entry(engine="whole_prompt"),
        Entry(engine="chunked", changes=(("token_budget", 514),)),
    ),
)

ONE_LONG_PROMPT = Scene(
    slug="one-long-prompt",
    title="One long prompt",
    about=(
        "A 32,768-token prompt arrives among three streams. Taken whole it freezes them for one "
        "long step; SGLang cuts it but lets no decode run beside it; chunked shares every step."
    ),
    common=_common(
        _request("chat 1", 256, 48),
        _request("chat 2", 256, 48),
        _request("chat 3", 256, 48, at=20.0),
        _request("long", 32_768, 8, at=50.0),
        target_ms=50.0,
        limits=EngineLimits(chunk_tokens=1024),
    ),
    entries=(
        Entry(engine="whole_prompt"),
        Entry(engine="prefill_first"),
        Entry(engine="sglang", changes=(("chunk_tokens", 4096),)),
        Entry(engine="chunked"),
    ),
)

BUDGET_MONOPOLY = Scene(
    slug="budget-monopoly",
    title="Budget monopoly",
    about=(
        "A 131,072-token prompt is in flight when a short one arrives. Without a chunk cap "
        "the long prompt takes the whole budget of 2,048 in every step and the short one waits "
        "for all the rest of it; with a cap of 1,024 there is room in the next step."
    ),
    common=_common(
        _request("chat", 64, 140),
        _request("long", 131_072, 4, at=20.0),
        _request("short", 512, 24, at=500.0),
        target_ms=50.0,
        limits=EngineLimits(token_budget=2048, chunk_tokens=None, max_seqs=256),
    ),
    entries=(
        Entry(engine="vllm_v1", changes=(("chunk_tokens", None),)),
        Entry(engine="vllm_v1", changes=(("chunk_tokens", 1024),)),
    ),
)

PREFILL_FIRST_STARVATION = Scene(
    slug="starvation",
    title="Prefill-first starvation",
    about=(
        "Five documents of 8,192 tokens keep coming, each before the last one is prefilled. "
        "Where prefill goes first the two chats stand still until the last is done; "
        "chunked gives them a token in every step."
    ),
    common=_common(
        _request("chat 1", 128, 60),
        _request("chat 2", 128, 60),
        *(_request(f"doc {number}", 8192, 6, at=40.0 + 140.0 * number) for number in range(1, 6)),
        target_ms=50.0,
        limits=EngineLimits(token_budget=8192, chunk_tokens=None),
    ),
    entries=(
        Entry(engine="prefill_first"),
        Entry(engine="sglang", changes=(("chunk_tokens", 2048),)),
        Entry(engine="chunked", changes=(("token_budget", 1024),)),
    ),
)

SHARED_PREFIX = Scene(
    slug="shared-prefix",
    title="Shared prefix",
    about=(
        "Five users share a system prompt of 6,144 tokens. With prefix caching its KV is computed "
        "once: later prompts skip those chunks, and what is left of a prompt is short with or "
        "without chunking."
    ),
    common=_common(
        *(
            _request(
                f"user {number}",
                6144 + 256 * number,
                16,
                at=90.0 * (number - 1),
                shared=("system", 6144),
            )
            for number in range(1, 6)
        ),
        target_ms=50.0,
    ),
    entries=(
        Entry(engine="whole_prompt", changes=(("prefix_caching", False),)),
        Entry(engine="whole_prompt", changes=(("prefix_caching", True),)),
        Entry(engine="chunked", changes=(("token_budget", 1024), ("prefix_caching", False))),
        Entry(engine="chunked", changes=(("token_budget", 1024), ("prefix_caching", True))),
    ),
)

SCENES: dict[str, Scene] = {
    scene.slug: scene
    for scene in (
        KV_PRESSURE,
        FIGURE_7,
        ONE_LONG_PROMPT,
        BUDGET_MONOPOLY,
        PREFILL_FIRST_STARVATION,
        SHARED_PREFIX,
    )
}
"""By name in a link; the first is what the page shows unasked."""
