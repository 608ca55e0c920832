"""Loads whose prompts begin alike: conversations, and requests behind a system prompt.

Arrivals are open loop: the times are given beforehand, whatever the engine makes of them.
"""

from __future__ import annotations

from string import ascii_uppercase

from s11.checks import MAX_TIME_MS, MAX_TOKENS, require_int, require_ms
from s11.workload import Request, Workload

MAX_TURNS = 1_000
LEAD_IN_STEPS, TAIL_STEPS = 2, 3  # as in the chapter's scenario


def conversation(
    *,
    turns: int,
    system_tokens: int,
    user_tokens: int,
    answer_tokens: int,
    gap_ms: float,
    conversations: int = 1,
    streaming_users: int = 0,
) -> Workload:
    """Return conversations whose every turn sends all of the turns before it again.

    Turn k's prompt is the system prompt, k messages of `user_tokens` and the k - 1 answers so
    far. Conversations take turns and have the system prompt in common. A request arrives every
    `gap_ms`; it is for the caller to choose a gap in which the answer before is complete.

    Raises:
        ValueError: a count, length or time out of range.
    """
    turns = require_int("turns", turns, 1, MAX_TURNS)
    conversations = require_int("conversations", conversations, 1, len(ascii_uppercase))
    system_tokens = require_int("system_tokens", system_tokens, 0, MAX_TOKENS)
    user_tokens = require_int("user_tokens", user_tokens, 1, MAX_TOKENS)
    answer_tokens = require_int("answer_tokens", answer_tokens, 1, MAX_TOKENS)
    gap_ms = require_ms("gap_ms", gap_ms, 0, MAX_TIME_MS)
    requests: list[Request] = []
    for turn in range(1, turns + 1):
        for letter in ascii_uppercase[:conversations]:
            name = "turn " if conversations == 1 else letter
            shared = system_tokens if turn == 1 else 0
            requests.append(
                Request(
                    request_id=f"{name}{turn}",
                    arrival_ms=len(requests) * gap_ms,
                    prompt_tokens=system_tokens + turn * user_tokens + (turn - 1) * answer_tokens,
                    output_tokens=answer_tokens,
                    shared_group="system prompt" if shared else None,
                    shared_tokens=shared,
                    continues=f"{name}{turn - 1}" if turn > 1 else None,
                )
            )
    return _beside_users(requests, streaming_users)


def shared_system_prompt(
    *,
    requests: int,
    shared_tokens: int,
    own_tokens: int,
    output_tokens: int,
    gap_ms: float,
    system_prompts: int = 1,
    streaming_users: int = 0,
) -> Workload:
    """Return requests that begin with one of `system_prompts` texts of `shared_tokens`.

    Requests use the system prompts in turn, and `own_tokens` of their own follow; with none of
    their own, their prompts are the same. A request arrives every `gap_ms`.

    Raises:
        ValueError: a count, length or time out of range.
    """
    requests = require_int("requests", requests, 1, MAX_TURNS)
    system_prompts = require_int("system_prompts", system_prompts, 1, len(ascii_uppercase))
    shared_tokens = require_int("shared_tokens", shared_tokens, 0, MAX_TOKENS)
    own_tokens = require_int("own_tokens", own_tokens, 0, MAX_TOKENS)
    gap_ms = require_ms("gap_ms", gap_ms, 0, MAX_TIME_MS)
    asked = []
    for number in range(requests):
        turn, which = divmod(number, system_prompts)
        letter = ascii_uppercase[which]
        name = "request " if system_prompts == 1 else letter
        asked.append(
            Request(
                request_id=f"{name}{turn + 1}",
                arrival_ms=number * gap_ms,
                prompt_tokens=shared_tokens + own_tokens,
                output_tokens=output_tokens,
                shared_group=f"system prompt {letter}" if shared_tokens else None,
                shared_tokens=shared_tokens,
            )
        )
    return _beside_users(asked, streaming_users)


def _beside_users(requests: list[Request], streaming_users: int) -> Workload:
    return Workload(
        requests=tuple(requests),
        streaming_users=streaming_users,
        lead_in_steps=LEAD_IN_STEPS,
        tail_steps=TAIL_STEPS,
    )
