"""Who asks for what, and when: requests, and the streams that run beside them."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from s11.checks import MAX_TIME_MS, MAX_TOKENS, MAX_USERS, require_int, require_ms

MAX_REQUESTS = 2_000_000
HASH_BLOCK_TOKENS = 512  # Mooncake's, kvcache-ai/Mooncake, FAST25-release/README.md
MAX_HASH_ID = 2**63 - 1
MAX_SCENARIO_STEPS = 10_000
USER_CONTEXT_TOKENS = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One user's call: a prompt of `prompt_tokens`, answered with `output_tokens`.

    `arrival_ms` counts from the end of the workload's lead-in. The first output token
    comes from the prompt's last chunk; the other `output_tokens - 1` are decodes.

    What its prompt has in common with others', for the prefix cache, is one of three. Its first
    `shared_tokens` are those of `shared_group` (a longer member extends a shorter one). Or it
    begins with all of `continues`, another request's prompt and outputs. Or `hash_ids`, one for
    each begun `HASH_BLOCK_TOKENS` of the prompt, are as another's from the first on: then their
    tokens are too, as far as both prompts go. The rest is its own.

    With `after`, a client sends it `arrival_ms` after the end of that other request.

    Raises:
        ValueError: an empty id, a negative or endless time, fewer than one token, a shared
            prefix longer than the prompt, a number of hash ids that is not the prompt's, or
            two kinds of what is shared.
    """

    request_id: str
    prompt_tokens: int
    arrival_ms: float = 0.0
    output_tokens: int = 1
    shared_group: str | None = None
    shared_tokens: int = 0
    continues: str | None = None
    after: str | None = None
    hash_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.request_id, str) or not 0 < len(self.request_id) <= 200:
            raise ValueError(
                f"request_id: {str(self.request_id)[:40]!r} is not a text of 1 to 200 characters"
            )
        for name in ("prompt_tokens", "output_tokens"):
            object.__setattr__(self, name, require_int(name, getattr(self, name), 1, MAX_TOKENS))
        object.__setattr__(
            self, "arrival_ms", require_ms("arrival_ms", self.arrival_ms, 0, MAX_TIME_MS)
        )
        shared = require_int("shared_tokens", self.shared_tokens, 0, self.prompt_tokens)
        object.__setattr__(self, "shared_tokens", shared)
        for name in ("shared_group", "continues", "after"):
            text = getattr(self, name)
            if text is not None and (not isinstance(text, str) or not 0 < len(text) <= 200):
                raise ValueError(f"{name}: {str(text)[:40]!r} is not a text of 1 to 200 characters")
        if (self.shared_group is None) != (shared == 0):
            raise ValueError(
                f"shared_tokens: {shared} does not go with shared_group {self.shared_group!r} "
                "(allowed: both or neither)"
            )
        if self.shared_group is not None and self.continues is not None:
            raise ValueError(
                f"continues: {self.continues!r} is not allowed together with shared_group"
            )
        if self.hash_ids != ():
            self._check_hash_ids()

    def _check_hash_ids(self) -> None:
        if not isinstance(self.hash_ids, tuple | list):
            raise ValueError(f"hash_ids: {self.hash_ids!r:.60} is not a list of whole numbers")
        for name in ("shared_group", "continues"):
            if getattr(self, name) is not None:
                raise ValueError(f"hash_ids: not allowed together with {name}")
        needed = -(-self.prompt_tokens // HASH_BLOCK_TOKENS)
        if len(self.hash_ids) != needed:
            raise ValueError(
                f"hash_ids: {len(self.hash_ids):,} do not go with prompt_tokens "
                f"{self.prompt_tokens:,} (allowed: {needed:,}, one for each begun "
                f"{HASH_BLOCK_TOKENS} tokens)"
            )
        ids = tuple([require_int("hash_ids", value, 0, MAX_HASH_ID) for value in self.hash_ids])
        object.__setattr__(self, "hash_ids", ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Requests in arrival order, beside `streaming_users` who decode from first to last step.

    Those that are sent when another ends come last. `user_context_tokens` is what each
    streaming user has in its cache before the first step; it matters to cost models that
    count what a decode attends to.

    `lead_in_steps` decode-only steps pass before the requests' clock starts, and
    `tail_steps` follow when the last request is done. Where nobody streams, neither exists.

    Raises:
        ValueError: a count out of range, a request id used twice, a request that continues
            (or waits for) one which is not there, comes round to itself, or is longer than its
            own prompt.
    """

    requests: tuple[Request, ...]
    streaming_users: int = 0
    lead_in_steps: int = 0
    tail_steps: int = 0
    user_context_tokens: int = USER_CONTEXT_TOKENS

    def __post_init__(self) -> None:
        requests = tuple(self.requests)
        require_int("requests", len(requests), 0, MAX_REQUESTS)
        for request in requests:
            if not isinstance(request, Request):
                raise ValueError(f"requests: {request!r:.60} is no Request")
        for name, most in (
            ("streaming_users", MAX_USERS),
            ("lead_in_steps", MAX_SCENARIO_STEPS),
            ("tail_steps", MAX_SCENARIO_STEPS),
            ("user_context_tokens", MAX_TOKENS),
        ):
            object.__setattr__(self, name, require_int(name, getattr(self, name), 0, most))
        if len({request.request_id for request in requests}) < len(requests):
            seen: set[str] = set()
            for request in requests:
                if request.request_id in seen:
                    raise ValueError(f"request_id: {request.request_id!r} is used twice")
                seen.add(request.request_id)
        for request in requests if self.streaming_users else ():
            number = request.request_id.removeprefix("user-")
            if number != request.request_id and number.isdecimal():
                raise ValueError(
                    f"request_id: {request.request_id!r} is the name of a streaming user"
                )
        if any(request.continues is not None for request in requests):
            _check_continued(requests)
        if any(request.after is not None for request in requests):
            _check_waits(requests)
        in_order = sorted(requests, key=_by_arrival)
        object.__setattr__(self, "requests", tuple(in_order))


def _by_arrival(request: Request) -> float:
    return request.arrival_ms if request.after is None else math.inf


def _check_waits(requests: tuple[Request, ...]) -> None:
    """Refuse a request that waits for one which is not there, or for itself."""
    by_id = {request.request_id: request for request in requests}
    sound: set[str] = set()
    for request in requests:
        chain: set[str] = set()
        while request.after is not None and request.request_id not in sound:
            chain.add(request.request_id)
            if request.after not in by_id:
                raise ValueError(f"after: {request.after!r} is no request of this workload")
            if request.after in chain:
                raise ValueError(f"after: {request.after!r} waits for itself")
            request = by_id[request.after]
        sound |= chain


def _check_continued(requests: tuple[Request, ...]) -> None:
    """Refuse a conversation that does not hang together."""
    by_id = {request.request_id: request for request in requests}
    sound: set[str] = set()
    for request in requests:
        chain: dict[str, None] = {}
        while request.continues is not None and request.request_id not in sound:
            chain[request.request_id] = None
            before = by_id.get(request.continues)
            if before is None:
                raise ValueError(f"continues: {request.continues!r} is no request of this workload")
            if before.request_id in chain:
                raise ValueError(f"continues: {request.continues!r} comes round to itself")
            least = before.prompt_tokens + before.output_tokens
            if request.prompt_tokens < least:
                raise ValueError(
                    f"prompt_tokens: {request.prompt_tokens:,} of {request.request_id!r} is less "
                    f"than the {least:,} tokens of {before.request_id!r} that it continues"
                )
            request = before
        sound.update(chain)


def chapter_scenario(
    *,
    prompt_tokens: int = 8192,
    streaming_users: int = 24,
    lead_in_steps: int = 2,
    tail_steps: int = 3,
) -> Workload:
    """Return the chapter's scenario: one long prompt that arrives among running streams.

    The prompt arrives exactly when the lead-in ends and wants one output token.
    """
    return Workload(
        requests=(Request(request_id="long", prompt_tokens=prompt_tokens),),
        streaming_users=streaming_users,
        lead_in_steps=lead_in_steps,
        tail_steps=tail_steps,
    )


def poisson_workload(
    *,
    request_count: int,
    rate_per_s: float,
    prompt_tokens: int,
    output_tokens: int,
    seed: int,
) -> Workload:
    """Return `request_count` requests of one size whose arrivals are a Poisson process.

    Gaps between arrivals are exponential with mean 1 / `rate_per_s` seconds.

    Raises:
        ValueError: a count, rate or size out of range.
    """
    require_int("request_count", request_count, 0, MAX_REQUESTS)
    require_ms("rate_per_s", rate_per_s, 0, 1e6, above=True)
    draw = random.Random(seed)
    arrival_ms = 0.0
    requests = []
    for index in range(request_count):
        arrival_ms += draw.expovariate(rate_per_s) * 1000.0
        requests.append(
            Request(
                request_id=str(index),
                arrival_ms=arrival_ms,
                prompt_tokens=prompt_tokens,
                output_tokens=output_tokens,
            )
        )
    return Workload(requests=tuple(requests))


def closed_loop_workload(
    *,
    clients: int,
    requests_per_client: int,
    prompt_tokens: int,
    output_tokens: int,
    start_gap_ms: float = 0.0,
    think_ms: float = 0.0,
) -> Workload:
    """Return `clients` that each send their next request when their last one has ended.

    start_gap_ms: from one client's first request to the next client's.
    think_ms: from the end of a request to the client's next.

    Raises:
        ValueError: a count, size or time out of range.
    """
    require_int("clients", clients, 1, MAX_USERS)
    require_int("requests_per_client", requests_per_client, 1, MAX_REQUESTS // clients)
    require_ms("start_gap_ms", start_gap_ms, 0, MAX_TIME_MS)
    require_ms("think_ms", think_ms, 0, MAX_TIME_MS)
    return Workload(
        requests=tuple(
            Request(
                request_id=f"{client + 1}.{turn + 1}",
                prompt_tokens=prompt_tokens,
                output_tokens=output_tokens,
                arrival_ms=think_ms if turn else client * start_gap_ms,
                after=f"{client + 1}.{turn}" if turn else None,
            )
            for turn in range(requests_per_client)
            for client in range(clients)
        )
    )
