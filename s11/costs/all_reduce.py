"""Tensor-parallel all-reduce on one node: peer-to-peer for small messages, a ring for large ones.

Sources: the two peer-to-peer forms are those of vLLM's custom all-reduce (csrc/
custom_all_reduce.cuh: one-shot, every GPU reads every other's message; two-shot, reduce-scatter
then all-gather); a ring moves 2 (n − 1) / n of the message over each link (Patarasuk and Yuan
2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations").
"""

from __future__ import annotations

from dataclasses import dataclass

from s11.catalog import Gpu
from s11.costs.prefill_attention import Numbers

PEER_MAX_BYTES = 2 * 2**20  # measured: over NVLink, larger messages go by ring
PEER_MAX_GPUS_PCIE = 2  # without NVLink, vLLM uses its custom all-reduce for two GPUs only


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduceConstants:
    """What one GPU's all-reduce reaches of the datasheet's interconnect; fitted.

    latency_ms: one peer-to-peer exchange between two GPUs; a two-shot all-reduce takes two.
    latency_ms_per_gpu: what each GPU beyond the second adds to it.
    bandwidth_share: share of the interconnect's one-way bandwidth, peer-to-peer.
    ring_latency_ms: what the ring takes beside its bytes, over PCIe for each GPU.
    ring_bandwidth_share: the same share in the ring; over PCIe of one link, which all GPUs share
        on their way through the host.
    """

    latency_ms: float
    latency_ms_per_gpu: float
    bandwidth_share: float
    ring_latency_ms: float
    ring_bandwidth_share: float


def all_reduce_ms(
    message_bytes: Numbers, *, gpu: Gpu, num_gpus: Numbers, constants: AllReduceConstants
) -> Numbers:
    """Return the time to sum a message of `message_bytes` over `num_gpus`, in ms; 0 for one."""
    nvlink = gpu.interconnect == "NVLink"
    link_bytes_per_ms = gpu.interconnect_bytes_per_s / 1e3
    peer_ms_per_byte = 1 / (link_bytes_per_ms * constants.bandwidth_share)
    latency_ms = constants.latency_ms + constants.latency_ms_per_gpu * (num_gpus - 2)
    one_shot_ms = latency_ms + message_bytes * (num_gpus - 1) * peer_ms_per_byte
    two_shot_ms = 2 * latency_ms + (
        message_bytes * 2 * (num_gpus - 1) / num_gpus * peer_ms_per_byte
    )
    peer_ms = (one_shot_ms + two_shot_ms - abs(one_shot_ms - two_shot_ms)) / 2  # the smaller

    sharers = nvlink + (1 - nvlink) * num_gpus  # NVLink gives each GPU its own links
    ring_ms = sharers * (
        constants.ring_latency_ms
        + message_bytes
        * 2
        * (num_gpus - 1)
        / num_gpus
        / (link_bytes_per_ms * constants.ring_bandwidth_share)
    )
    by_ring = nvlink * (message_bytes > PEER_MAX_BYTES) + (1 - nvlink) * (
        num_gpus > PEER_MAX_GPUS_PCIE
    )
    return (num_gpus > 1) * (by_ring * ring_ms + (1 - by_ring) * peer_ms)
