"""The commands that start real engines with our knobs set, and what an engine has no flag for.

Sources: vLLM, docs/cli/serve; SGLang, docs/advanced_features/server_arguments; TensorRT-LLM,
docs/commands/trtllm-serve; llama.cpp, tools/server/README; LMDeploy, lmdeploy/cli/utils. Names of
knobs are those of `s11.presets.FLAGS`; where each default comes from is told in `s11.engine_knobs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from s11.catalog import MODELS, Deployment
from s11.engine_knobs import LLAMA_CPP, LMDEPLOY, SGLANG, TENSORRT_LLM, VLLM, flag_of
from s11.presets import FLAGS

OPTIONS_FILE = "tuned.yml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What an engine is to be started with; None leaves a knob as the engine has it.

    token_budget: most tokens in one step.
    chunk_tokens: chunk cap, the most prompt tokens of one request in one step; for SGLang and
        LMDeploy of a whole step.
    max_seqs: most requests that run at once.
    longest_tokens: the longest sequence to allow; None: as the model was made.
    mixed: whether decodes ride along in SGLang's prefill steps.
    """

    machine: Deployment
    token_budget: int | None = None
    chunk_tokens: int | None = None
    max_seqs: int | None = None
    longest_tokens: int | None = None
    chunking: bool = True
    mixed: bool = False
    prefix_caching: bool | None = None


def launch_command(engine: str, launch: Launch) -> str:
    """Return the command that starts the engine so, a flag a line.

    Raises:
        KeyError: an engine that is not one of `s11.engine_knobs.ENGINES`.
    """
    return _COMMANDS[engine](launch)


def _vllm(launch: Launch) -> str:
    names = FLAGS["vllm_v1"]
    return joined(
        f"vllm serve {repository(launch.machine)}",
        f"--tensor-parallel-size {launch.machine.tensor_parallel}",
        _number(names["token_budget"], launch.token_budget),
        _number(names["chunk_tokens"], launch.chunk_tokens if launch.chunking else None),
        _number(names["max_seqs"], launch.max_seqs),
        _number(names["max_model_len"], launch.longest_tokens),
        None if launch.chunking else _negated(names["chunking"]),
        _switch(names["prefix_caching"], launch.prefix_caching),
        _fp8(launch),
    )


def _sglang(launch: Launch) -> str:
    names = FLAGS["sglang"]
    return joined(
        f"python -m sglang.launch_server --model-path {repository(launch.machine)}",
        f"--tp-size {launch.machine.tensor_parallel}",
        _number(names["token_budget"], launch.token_budget),
        _number(names["chunk_tokens"], launch.chunk_tokens)
        if launch.chunking
        else names["chunking"],
        _number(names["max_seqs"], launch.max_seqs),
        _number(names["max_model_len"], launch.longest_tokens),
        names["mixed"] if launch.mixed and launch.chunking else None,
        names["prefix_caching"] if launch.prefix_caching is False else None,
        _fp8(launch),
    )


def _tensorrt_llm(launch: Launch) -> str:
    names = FLAGS["tensorrt_llm"]
    options = [f"{names['chunking']}: true"] if launch.chunking else []
    if launch.prefix_caching is not None:
        group, _, name = names["prefix_caching"].partition(".")
        options += [f"{group}:", f"  {name}: {str(launch.prefix_caching).lower()}"]
    command = joined(
        f"trtllm-serve {repository(launch.machine)}",
        f"--tp_size {launch.machine.tensor_parallel}",
        _number(f"--{names['token_budget']}", launch.token_budget),
        _number(f"--{names['max_seqs']}", launch.max_seqs),
        _number(f"--{names['max_model_len']}", launch.longest_tokens),
        f"--extra_llm_api_options {OPTIONS_FILE}" if options else None,
    )
    checkpoint = "an fp8 checkpoint of the model"
    fp8 = launch.machine.precision == "fp8"
    if not options:
        return f"{command}\n# with {checkpoint}" if fp8 else command
    head = f"# {OPTIONS_FILE}" + (f"  (and {checkpoint})" if fp8 else "") + ":"
    return "\n".join([command, head, *(f"# {option}" for option in options)])


def _llama_cpp(launch: Launch) -> str:
    """Prompts are always cut to what the logical batch leaves; the model is a GGUF file."""
    return joined(
        "llama-server -m MODEL.gguf",
        "--split-mode row" if launch.machine.tensor_parallel > 1 else None,
        *_numbers(LLAMA_CPP, launch, "token_budget", "max_seqs"),
        _switch(_named(LLAMA_CPP, "prefix_caching"), launch.prefix_caching),
    )


def _lmdeploy(launch: Launch) -> str:
    own = replace(launch, chunk_tokens=launch.chunk_tokens if launch.chunking else None)
    return joined(
        f"lmdeploy serve api_server {repository(launch.machine)}",
        f"--tp {launch.machine.tensor_parallel}",
        *_numbers(LMDEPLOY, own, "token_budget"),
        f"--max-prefill-iters {MOST_SLICES}" if launch.token_budget else None,
        *_numbers(LMDEPLOY, own, "chunk_tokens", "max_seqs"),
        _named(LMDEPLOY, "prefix_caching") if launch.prefix_caching else None,
        "--model-format fp8" if launch.machine.precision == "fp8" else None,
    )


MOST_SLICES = 1_024
"""LMDeploy's --max-prefill-iters: with its default of 1 the tokens per iteration do nothing."""

_COMMANDS: dict[str, Callable[[Launch], str]] = {
    VLLM: _vllm,
    SGLANG: _sglang,
    TENSORRT_LLM: _tensorrt_llm,
    LLAMA_CPP: _llama_cpp,
    LMDEPLOY: _lmdeploy,
}

PARTS = {
    "token_budget": "the token budget",
    "chunk_tokens": "the chunk cap",
    "max_seqs": "the seats",
    "chunking": "chunking off",
    "prefix_caching": "prefix caching",
}
"""By knob, what it is called where an engine has no flag for it."""


def without_flag(engine: str, launch: Launch) -> tuple[str, ...]:
    """Return those of our knobs that are set and that the engine has no flag for."""
    asked = {
        "token_budget": launch.token_budget is not None,
        "chunk_tokens": launch.chunk_tokens is not None and launch.chunking,
        "max_seqs": launch.max_seqs is not None,
        "chunking": not launch.chunking,
        "prefix_caching": launch.prefix_caching is not None,
    }
    return tuple(knob for knob, is_set in asked.items() if is_set and not flag_of(engine, knob))


def remarks(engine: str, launch: Launch) -> tuple[str, ...]:
    """Return what the command cannot say: knobs without a flag, and flags that mean less."""
    missing = without_flag(engine, launch)
    told = [f"No flag for {' and '.join(PARTS[knob] for knob in missing)}."] if missing else []
    budget, seats = launch.token_budget, launch.max_seqs
    capped = launch.chunking and launch.chunk_tokens is not None
    if engine == VLLM and budget is not None and seats is not None and budget < seats:
        told.append(f"vLLM refuses a budget of {budget:,} below {seats:,} seats.")
    if engine == SGLANG:
        if not launch.mixed:
            told.append("Without mixed chunk, decodes stand still in every prefill step.")
        if budget is not None:
            told.append(f"{FLAGS['sglang']['token_budget']} counts prompt tokens alone.")
    if engine == TENSORRT_LLM and launch.chunking:
        told.append("Chunks are whole KV blocks.")
    if engine == LLAMA_CPP:
        told.append("The model is a GGUF file, with its precision in it.")
        if budget is not None:
            told.append("The device computes the batch in pieces of -ub (512 as it comes).")
    if engine in (SGLANG, LMDEPLOY) and capped:
        told.append("The cap is for all prompts of a step together.")
    if engine == LMDEPLOY and budget is not None:
        told.append("Whether the server's command line passes --max-prefill-iters on is not known.")
    return tuple(told)


def repository(machine: Deployment) -> str:
    """Return the model's Hugging Face repository; MODEL where it is not known."""
    if not listed(machine):
        return "MODEL"
    address = MODELS[machine.model.name].sources[0].address
    return address.removeprefix("https://huggingface.co/").partition("/blob/")[0]


def listed(machine: Deployment) -> bool:
    """Return whether the model is one of the catalog's."""
    return MODELS.get(machine.model.name) == machine.model


def joined(*lines: str | None) -> str:
    """Return the lines of a shell command that are there, as one command."""
    return " \\\n  ".join(line for line in lines if line)


def _numbers(engine: str, launch: Launch, *knobs: str) -> list[str | None]:
    return [_number(_named(engine, knob), getattr(launch, knob)) for knob in knobs]


def _named(engine: str, knob: str) -> str:
    flag = flag_of(engine, knob)
    assert flag is not None, f"{engine} has no flag for {knob}"
    return flag


def _number(flag: str, value: int | None) -> str | None:
    return None if value is None else f"{flag} {value}"


def _switch(flag: str, on: bool | None) -> str | None:
    """Return a switch that can be turned off by its negation; nothing where it is left alone."""
    return None if on is None else flag if on else _negated(flag)


def _negated(flag: str) -> str:
    return f"--no-{flag.removeprefix('--')}"


def _fp8(launch: Launch) -> str | None:
    return "--quantization fp8" if launch.machine.precision == "fp8" else None
