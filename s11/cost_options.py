"""The command line's cost models: which one, and on what model, GPU and measurements."""

from __future__ import annotations

import argparse
from dataclasses import fields, replace
from pathlib import Path

from s11.catalog import GPUS, MODELS, PRECISIONS, Deployment, Model
from s11.catalog.huggingface import MAX_CONFIG_BYTES, model_from_config
from s11.costs import AnyCost, FittedCost, LinearCost, RooflineCost
from s11.costs.host import HOST_OF_POLICY
from s11.costs.least_squares import fit
from s11.costs.measurements import MAX_CSV_CHARACTERS, read_measurements

COEFFICIENTS = ("fixed_ms", "prefill_ms_per_token", "decode_ms_per_token", "context_ms_per_token")
DEPLOYMENT = ("model", "model_config", "gpu", "tensor_parallel", "precision")
DEFAULT_MODEL, DEFAULT_GPU = "llama-3.1-8b", "h100"


def cost_from(options: argparse.Namespace, base: AnyCost, policy: str | None) -> AnyCost:
    """Return the cost model that the options describe, on top of an experiment's own.

    policy: the scheduler that the options choose, which brings its engine's host along.

    Naming a model or a GPU chooses the roofline, measurements choose the fitted model.

    Raises:
        ValueError: options of another cost model than the chosen one, files that do not hold
            what they should.
    """
    given = {name: value for name, value in vars(options).items() if value is not None}
    chosen = given.get("cost") or _implied(given) or base.name
    allowed = {
        LinearCost.name: COEFFICIENTS[:3],
        FittedCost.name: (*COEFFICIENTS, "measurements"),
        RooflineCost.name: DEPLOYMENT,
    }[chosen]
    for name in (*COEFFICIENTS, *DEPLOYMENT, "measurements"):
        if name in given and name not in allowed:
            raise ValueError(
                f"{name}: does not go with the cost model {chosen} that the other options "
                f"choose (allowed: {', '.join(allowed)}; or --cost with another model alone)"
            )
    if chosen == RooflineCost.name:
        engine = base.engine if isinstance(base, RooflineCost) else "vllm"
        if policy is not None:
            engine = HOST_OF_POLICY.get(policy, "vllm")
        return RooflineCost(deployment=_deployment(given, base), engine=engine)
    if chosen == FittedCost.name:
        return _fitted(given, base)
    linear = base if isinstance(base, LinearCost) else LinearCost()
    return replace(linear, **{f.name: given[f.name] for f in fields(linear) if f.name in given})


def _implied(given: dict[str, object]) -> str | None:
    if any(name in given for name in DEPLOYMENT):
        return RooflineCost.name
    return FittedCost.name if "measurements" in given else None


def _deployment(given: dict[str, object], base: AnyCost) -> Deployment:
    was = base.deployment if isinstance(base, RooflineCost) else None
    if "model" in given and "model_config" in given:
        raise ValueError("model: not allowed together with model_config")
    model: Model = was.model if was else MODELS[DEFAULT_MODEL]
    if "model" in given:
        model = MODELS[str(given["model"])]
    if "model_config" in given:
        path = Path(str(given["model_config"]))
        model = model_from_config(_text(path, "model_config", MAX_CONFIG_BYTES))
    plain = was or Deployment(model=model, gpu=DEFAULT_GPU)
    chosen = {
        name: given[name] for name in ("gpu", "tensor_parallel", "precision") if name in given
    }
    return replace(plain, model=model, **chosen)  # type: ignore[arg-type]


def _fitted(given: dict[str, object], base: AnyCost) -> FittedCost:
    if "measurements" in given:
        path = Path(str(given["measurements"]))
        cost = fit(read_measurements(_text(path, "measurements", MAX_CSV_CHARACTERS))).cost
    elif isinstance(base, FittedCost):
        cost = base
    else:
        missing = [name for name in COEFFICIENTS[:3] if name not in given]
        if missing:
            raise ValueError(
                f"measurements: none given for the fitted cost model, and no {missing[0]} "
                "(allowed: a CSV file, or the coefficients)"
            )
        return FittedCost(**{name: given[name] for name in COEFFICIENTS if name in given})  # type: ignore[arg-type]
    changed = {name: given[name] for name in COEFFICIENTS if name in given}
    return replace(cost, **changed)  # type: ignore[arg-type]


def _text(path: Path, field: str, most: int) -> str:
    """Return a file's text.

    Raises:
        ValueError: a file that is too large, cannot be read or is no text in UTF-8.
    """
    try:
        if path.exists() and not path.is_file():  # a device or a pipe need not end
            raise ValueError(f"{field}: {path.name} is not a file")
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise ValueError(f"{field}: {path.name} is too large (allowed: up to {most:,} bytes)")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"{field}: {path.name} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{field}: {path.name} is not a text in UTF-8") from error


def names() -> dict[str, tuple[str, ...]]:
    """Return what each option of a deployment may name."""
    return {"model": tuple(MODELS), "gpu": tuple(GPUS), "precision": PRECISIONS}
