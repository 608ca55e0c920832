"""What to set, in the engine's own flags (`s11.engine_commands` says them)."""

from __future__ import annotations

from dataclasses import dataclass

from s11.catalog import Deployment
from s11.engine_commands import Launch, joined, launch_command, listed
from s11.engine_knobs import ENGINE_OF_POLICY
from s11.presets import FLAGS

LENGTH_GRAIN = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the page advises for one machine and engine.

    prompt_tokens, streaming_users, user_context_tokens: the load that it was chosen for.
    chunk_tokens: prompt tokens of a step; SGLang's count the decodes too.
    token_budget: chunk and one token for each decode.
    longest_tokens: the longest sequence to allow; None: as the model was made.
    """

    machine: Deployment
    policy: str
    prompt_tokens: int
    streaming_users: int
    user_context_tokens: int
    chunk_tokens: int
    token_budget: int
    max_seqs: int
    mixed: bool
    longest_tokens: int | None = None


def settings(
    machine: Deployment,
    *,
    policy: str,
    chunk_tokens: int,
    prompt_tokens: int,
    streaming_users: int,
    user_context_tokens: int,
    most_seats: int,
    mixed: bool,
) -> Settings:
    """Return the settings for a chunk size beside so many decodes.

    A budget below the seats is refused by vLLM, so the seats follow it down.
    """
    counted = policy == "sglang"
    budget = chunk_tokens if counted else chunk_tokens + streaming_users
    return Settings(
        machine=machine,
        policy=policy,
        prompt_tokens=prompt_tokens,
        streaming_users=streaming_users,
        user_context_tokens=user_context_tokens,
        chunk_tokens=chunk_tokens,
        token_budget=budget,
        max_seqs=min(most_seats, budget),
        mixed=mixed,
    )


def longest_sequence(
    machine: Deployment, *, kv_tokens: int, needed_tokens: int, block_size: int
) -> int | None:
    """Return the longest sequence to allow where the KV pool is smaller than the model's own.

    The largest multiple of 1,024 in the pool; of the KV block where that is below what the load
    needs. None: the pool holds the model's longest, or not even one block.
    """
    most = machine.model.max_positions
    if kv_tokens >= most:
        return None
    longest = kv_tokens - kv_tokens % LENGTH_GRAIN
    if longest < min(needed_tokens, most):
        longest = kv_tokens - kv_tokens % block_size
    return longest or None


def longest_words(chosen: Settings, *, kv_tokens: int, needed_tokens: int) -> str:
    """Return why the command bounds the sequences; "" where it does not."""
    name, longest = length_flag(chosen), chosen.longest_tokens
    if name is None or longest is None:
        return ""
    without = "vLLM does not start" if chosen.policy == "vllm_v1" else "longer ones never fit"
    told = (
        f"`{name}`: the model allows sequences of {chosen.machine.model.max_positions:,} tokens, "
        f"more than the pool's {kv_tokens:,}; without it {without}."
    )
    if longest < needed_tokens:
        told += f" A prompt and its answer need {needed_tokens:,}: more than fits."
    return told


def length_flag(chosen: Settings) -> str | None:
    """Return the option of the engine's command that bounds a sequence; None: it has none."""
    name = FLAGS.get(chosen.policy, {}).get("max_model_len")
    return f"--{name.removeprefix('--')}" if name else None


def command(chosen: Settings) -> str:
    """Return the command that starts the engine with these settings, a flag a line."""
    if chosen.policy in ENGINE_OF_POLICY:
        return launch_command(ENGINE_OF_POLICY[chosen.policy], _launch(chosen))
    machine = chosen.machine
    model = f"--model {machine.model.name}" if listed(machine) else "--model-config config.json"
    return joined(
        "python -m s11 simulate --cost roofline",
        model,
        f"--gpu {machine.gpu} --tensor-parallel {machine.tensor_parallel}",
        f"--precision {machine.precision}",
        f"--prompt-tokens {chosen.prompt_tokens} --streaming-users {chosen.streaming_users}",
        f"--user-context-tokens {chosen.user_context_tokens}",
        f"--chunk-tokens {chosen.chunk_tokens}",
    )


def _launch(chosen: Settings) -> Launch:
    """Return the settings as the engine's own: SGLang has a chunk size, the others a budget."""
    chunk_is_own = chosen.policy == "sglang"
    return Launch(
        machine=chosen.machine,
        token_budget=None if chunk_is_own else chosen.token_budget,
        chunk_tokens=chosen.chunk_tokens if chunk_is_own else None,
        max_seqs=chosen.max_seqs,
        longest_tokens=chosen.longest_tokens,
        mixed=chosen.mixed,
    )
