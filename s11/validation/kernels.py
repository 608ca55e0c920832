"""Measured kernels, and what the cost model says of each: one comparison a GPU and quantity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from s11.catalog import GPUS, Model, gpu_of_measured, tensor_parallel_sizes
from s11.costs.all_reduce import all_reduce_ms
from s11.costs.attention_kernels import decode_attention_ms, prefill_attention_ms
from s11.costs.constants import KernelConstants, constants_of
from s11.costs.gemm import gemm_ms
from s11.costs.linear_operators import elementwise_ms, layer_linear_ms
from s11.validation.errors import Comparison
from s11.validation.tables import BYTES, COUNT, MILLISECONDS, TEXT, YES_NO, Column, MeasuredTable

HEAD_DIM = 128  # of the measured attention rows, as their README says
SHORT_DECODE_MS = 0.05  # below, the launch of a kernel is most of what is measured
DTYPES = {"bfloat16": "bf16", "bf16": "bf16", "float16": "bf16", "fp16": "bf16", "fp8": "fp8"}
BENCHMARK_WEIGHT_COPIES = 6  # the harness behind gemm.csv runs six layers of one shape in turn

Floats = NDArray[np.float64]

COLUMNS: dict[str, Mapping[str, Column]] = {
    "gemm.csv": {
        "gpu": TEXT,
        "dtype": TEXT,
        "m": COUNT,
        "n": COUNT,
        "k": COUNT,
        "latency_ms": MILLISECONDS,
    },
    "prefill_attention.csv": {
        "gpu": TEXT,
        "batch_size": COUNT,
        "prompt_tokens": COUNT,
        "q_heads": COUNT,
        "kv_heads": COUNT,
        "latency_ms": MILLISECONDS,
    },
    "decode_attention.csv": {
        "gpu": TEXT,
        "batch_size": COUNT,
        "context_tokens": COUNT,
        "q_heads": COUNT,
        "kv_heads": COUNT,
        "latency_ms": MILLISECONDS,
    },
    "layer_linear.csv": {
        "gpu": TEXT,
        "model": TEXT,
        "tp": COUNT,
        "tokens": COUNT,
        "gemm_ms_per_layer": MILLISECONDS,
        "elementwise_ms_per_layer": MILLISECONDS,
        "hidden": COUNT,
        "ffn": COUNT,
        "heads": COUNT,
        "kv_heads": COUNT,
        "gated": YES_NO,
        "vocab": COUNT,
    },
    "allreduce.csv": {
        "gpu": TEXT,
        "num_gpus": COUNT,
        "message_bytes": BYTES,
        "latency_ms": MILLISECONDS,
    },
}


def known_gpus(names: NDArray[np.object_]) -> dict[str, str]:
    """Return the catalog's GPU by each name that is one; others are left out."""
    known = {}
    for name in dict.fromkeys(names.tolist()):
        try:
            known[name] = gpu_of_measured(name)
        except ValueError:
            continue
    return known


def gemm(table: MeasuredTable, gpu: str, name: str) -> Iterator[Comparison]:
    """Compare dense products: all of them, and by data type where there are several."""
    dtypes = np.array([dtype.lower() for dtype in table.texts("dtype")], dtype=object)
    predicted = np.zeros(table.rows)
    precisions = [p for p in ("bf16", "fp8") if any(DTYPES.get(d) == p for d in dtypes)]
    by_precision = {}
    for precision in precisions:
        chosen = np.array([DTYPES.get(dtype) == precision for dtype in dtypes])
        part = table.where(chosen)
        constants = constants_of(gpu, precision)
        by_precision[precision] = (chosen, constants.calibrated)
        predicted[chosen] = gemm_ms(
            part.numbers("m"),
            part.numbers("n"),
            part.numbers("k"),
            gpu=GPUS[gpu],
            constants=constants.gemm,
            fp8=precision == "fp8",
            weight_copies=BENCHMARK_WEIGHT_COPIES,
        )
    measured = table.numbers("latency_ms")
    known = np.isin(dtypes, list(DTYPES))
    groups = {"all": (known, all(calibrated for _, calibrated in by_precision.values()))}
    if len(by_precision) > 1:
        groups |= by_precision
    for group, (chosen, calibrated) in groups.items():
        if chosen.any():
            yield Comparison(
                file="gemm.csv",
                gpu=name,
                quantity="latency_ms",
                group=group,
                measured=measured[chosen],
                predicted=predicted[chosen],
                calibrated=calibrated,
            )


def prefill_attention(table: MeasuredTable, gpu: str, name: str) -> Iterator[Comparison]:
    """Compare the attention of whole prompts."""
    constants = constants_of(gpu, "bf16")
    predicted = prefill_attention_ms(
        table.numbers("batch_size"),
        table.numbers("prompt_tokens"),
        q_heads=table.numbers("q_heads"),
        kv_heads=table.numbers("kv_heads"),
        head_dim=HEAD_DIM,
        gpu=GPUS[gpu],
        constants=constants.prefill_attention,
    )
    yield Comparison(
        file="prefill_attention.csv",
        gpu=name,
        quantity="latency_ms",
        group="all",
        measured=table.numbers("latency_ms"),
        predicted=predicted,
        calibrated=_calibrated(constants, "prefill_attention"),
    )


def decode_attention(table: MeasuredTable, gpu: str, name: str) -> Iterator[Comparison]:
    """Compare the attention of decodes: rows of 0.05 ms and more, and all rows."""
    constants = constants_of(gpu, "bf16")
    sequences = table.numbers("batch_size")
    predicted = decode_attention_ms(
        sequences,
        sequences * table.numbers("context_tokens"),
        q_heads=table.numbers("q_heads"),
        kv_heads=table.numbers("kv_heads"),
        head_dim=HEAD_DIM,
        gpu=GPUS[gpu],
        constants=constants.decode_attention,
        repeated=True,
    )
    measured = table.numbers("latency_ms")
    long = measured >= SHORT_DECODE_MS
    for group, chosen in (("0.05 ms and more", long), ("all", long | True)):
        if chosen.any():
            yield Comparison(
                file="decode_attention.csv",
                gpu=name,
                quantity="latency_ms",
                group=group,
                measured=measured[chosen],
                predicted=predicted[chosen],
                calibrated=_calibrated(constants, "decode_attention"),
            )


def layer_linear(table: MeasuredTable, gpu: str, name: str) -> Iterator[Comparison]:
    """Compare a layer's four products together, and its elementwise operators together."""
    constants = constants_of(gpu, "bf16")
    products, elementwise = np.zeros(table.rows), np.zeros(table.rows)
    sizes = ("hidden", "ffn", "heads", "kv_heads", "gated", "vocab", "tp")
    shapes = np.stack([table.numbers(size) for size in sizes], axis=1)  # (rows, sizes)
    different, places = np.unique(shapes, axis=0, return_inverse=True)
    for number, shape in enumerate(different.astype(int).tolist()):
        size = shape[-1]
        model = _layer(shape)
        rows = places.reshape(-1) == number
        tokens = table.numbers("tokens")[rows]
        products[rows] = layer_linear_ms(
            tokens,
            model=model,
            tensor_parallel=size,
            gpu=GPUS[gpu],
            constants=constants.layer_linear,
            fp8=False,
        )
        elementwise[rows] = elementwise_ms(
            tokens,
            model=model,
            tensor_parallel=size,
            gpu=GPUS[gpu],
            constants=constants.elementwise,
        )
    for quantity, kernel, predicted in (
        ("gemm_ms_per_layer", "layer_linear", products),
        ("elementwise_ms_per_layer", "elementwise", elementwise),
    ):
        yield Comparison(
            file="layer_linear.csv",
            gpu=name,
            quantity=quantity,
            group="all",
            measured=table.numbers(quantity),
            predicted=predicted,
            calibrated=_calibrated(constants, kernel),
        )


def _layer(shape: list[int]) -> Model:
    """Return one layer of the measured sizes.

    Raises:
        ValueError: sizes that no model has, or that its GPUs cannot share.
    """
    hidden, ffn, heads, kv_heads, gated, vocab, size = shape
    try:
        model = Model(
            name="measured",
            title="measured",
            layers=1,
            hidden=hidden,
            ffn=ffn,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=max(1, hidden // heads),
            gated=bool(gated),
            vocab=vocab,
            tied_embeddings=False,
            max_positions=1,
        )
        if size not in tensor_parallel_sizes(model):
            raise ValueError(f"tp: {size} GPUs cannot share {heads} heads and a width of {ffn:,}")
    except ValueError as error:
        sizes = f"hidden {hidden:,}, ffn {ffn:,}, heads {heads:,}, kv_heads {kv_heads:,}, tp {size}"
        raise ValueError(f"layer_linear.csv, rows of {sizes}: {error}") from None
    return model


def allreduce(table: MeasuredTable, gpu: str, name: str) -> Iterator[Comparison]:
    """Compare the all-reduce."""
    constants = constants_of(gpu, "bf16")
    several = table.numbers("num_gpus") > 1
    if several.any():
        part = table.where(several)
        yield Comparison(
            file="allreduce.csv",
            gpu=name,
            quantity="latency_ms",
            group="all",
            measured=part.numbers("latency_ms"),
            predicted=all_reduce_ms(
                part.numbers("message_bytes"),
                gpu=GPUS[gpu],
                num_gpus=part.numbers("num_gpus"),
                constants=constants.all_reduce,
            ),
            calibrated=_calibrated(constants, "all_reduce"),
        )


def _calibrated(constants: KernelConstants, kernel: str) -> bool:
    return kernel not in constants.inherited_kernels


KERNELS: dict[str, Callable[[MeasuredTable, str, str], Iterator[Comparison]]] = {
    "gemm.csv": gemm,
    "prefill_attention.csv": prefill_attention,
    "decode_attention.csv": decode_attention,
    "layer_linear.csv": layer_linear,
    "allreduce.csv": allreduce,
}
