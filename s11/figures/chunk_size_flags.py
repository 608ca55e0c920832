"""What to set, in the engine's own flags.

Sources: vLLM, docs/cli/serve; SGLang, docs/advanced_features/server_arguments; TensorRT-LLM,
docs/commands/trtllm-serve. Names of knobs are those of `s11.presets.FLAGS`.
"""

from __future__ import annotations

from dataclasses import dataclass

from s11.catalog import MODELS, Deployment
from s11.presets import FLAGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the page advises for one machine and engine.

    prompt_tokens, streaming_users, user_context_tokens: the load that it was chosen for.
    chunk_tokens: prompt tokens of a step; SGLang's count the decodes too.
    token_budget: chunk and one token for each decode.
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


def command(chosen: Settings) -> str:
    """Return the command that starts the engine with these settings, a flag a line."""
    model, size = repository(chosen.machine), chosen.machine.tensor_parallel
    names, fp8 = FLAGS.get(chosen.policy, {}), chosen.machine.precision == "fp8"
    if chosen.policy == "vllm_v1":
        lines = [
            f"vllm serve {model}",
            f"--tensor-parallel-size {size}",
            f"{names['token_budget']} {chosen.token_budget}",
            f"{names['max_seqs']} {chosen.max_seqs}",
            *(["--quantization fp8"] if fp8 else []),
        ]
    elif chosen.policy == "sglang":
        lines = [
            f"python -m sglang.launch_server --model-path {model}",
            f"--tp-size {size}",
            f"{names['chunk_tokens']} {chosen.chunk_tokens}",
            f"{names['max_seqs']} {chosen.max_seqs}",
            *([names["mixed"]] if chosen.mixed else []),
            *(["--quantization fp8"] if fp8 else []),
        ]
    elif chosen.policy == "tensorrt_llm":
        options = "tuned.yml"
        lines = [
            f"trtllm-serve {model}",
            f"--tp_size {size}",
            f"--{names['token_budget']} {chosen.token_budget}",
            f"--{names['max_seqs']} {chosen.max_seqs}",
            f"--extra_llm_api_options {options}",
        ]
        note = "  (and an fp8 checkpoint of the model)" if fp8 else ""
        return f"{_lines(lines)}\n# {options}{note}:\n# {names['chunking']}: true"
    else:
        lines = [
            "python -m s11 simulate --cost roofline",
            *([f"--model {chosen.machine.model.name}"] if _listed(chosen.machine) else
              ["--model-config config.json"]),
            f"--gpu {chosen.machine.gpu} --tensor-parallel {size}",
            f"--precision {chosen.machine.precision}",
            f"--prompt-tokens {chosen.prompt_tokens} --streaming-users {chosen.streaming_users}",
            f"--user-context-tokens {chosen.user_context_tokens}",
            f"--chunk-tokens {chosen.chunk_tokens}",
        ]  # fmt: skip
    return _lines(lines)


def repository(machine: Deployment) -> str:
    """Return the model's Hugging Face repository; MODEL where it is not known."""
    if not _listed(machine):
        return "MODEL"
    address = MODELS[machine.model.name].sources[0].address
    return address.removeprefix("https://huggingface.co/").partition("/blob/")[0]


def _listed(machine: Deployment) -> bool:
    return MODELS.get(machine.model.name) == machine.model


def _lines(lines: list[str]) -> str:
    return " \\\n  ".join(lines)
