"""What is to be said of a machine whose steps are simulated."""

from __future__ import annotations

from s11.catalog import GPUS, Deployment
from s11.costs import RooflineCost
from s11.costs.constants import constants_of
from s11.experiment import Experiment
from s11.kv_pool import beyond_positions, kv_pool
from s11.words import count


def calibration_note(machine: Deployment) -> str:
    """Return on what measurements the machine's step times rest, in a sentence or two."""
    told = _calibration(machine)
    hardware = GPUS[machine.gpu]
    if machine.precision == "fp8" and hardware.fp8_flops_per_s is None:
        told += " It multiplies in bf16: fp8 halves the bytes of the weights alone."
    if machine.tensor_parallel > 2 and hardware.interconnect == "PCIe":
        told += (
            " Over PCIe, more than two GPUs reduce as on the one L40S host that was measured, "
            "without peer-to-peer: much of a step can be that."
        )
    return told


def _calibration(machine: Deployment) -> str:
    constants = constants_of(machine.gpu, machine.precision)
    title = GPUS[machine.gpu].title
    if constants.calibrated:
        return f"{title}: calibrated on measured kernels."
    if constants.inherits is None:
        return f"{title}: calibrated on measured kernels in bf16, not in {machine.precision}."
    owners = dict(constants.owners)
    attention = GPUS[owners["decode_attention"]].title
    if owners["gemm"] == machine.gpu:
        return f"{title}: its products are calibrated; attention is as efficient as on {attention}."
    parent = GPUS[owners["gemm"]].title
    own = "" if owners["decode_attention"] != machine.gpu else ", its attention apart,"
    return (
        f"{title}: not calibrated. It takes{own} the efficiencies of {parent} with its own "
        "datasheet's peaks."
    )


def machine_words(experiment: Experiment) -> str | None:
    """Return what an experiment's machine rests on and how much KV it holds; None without one.

    Raises:
        ValueError: a model that does not fit, or streams whose contexts do not.
    """
    cost, pool = experiment.cost, kv_pool(experiment)
    if not isinstance(cost, RooflineCost) or pool is None:
        return None
    users = experiment.workload.streaming_users
    held = users * experiment.workload.user_context_tokens
    told = (
        f"{calibration_note(cost.deployment)} Beside the weights "
        f"({pool.capacity.weights_bytes / 1e9:,.1f} GB on each GPU) and the activations, its KV "
        f"cache holds {count(pool.capacity.kv_tokens, 'token')}"
    )
    if users:
        told += f"; the streams hold {held:,} of them at first"
    beyond = beyond_positions(experiment)
    return f"{told}. {beyond}." if beyond else f"{told}."
