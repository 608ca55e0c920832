"""The trust page's tables, as columns of one length: errors, published figures, the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from s11.catalog import GPUS, MODELS, Gpu
from s11.costs.constants import KernelConstants, constants_of
from s11.figures.trust_info import QUANTITIES, gpu_title, group_title, pct
from s11.validation.errors import ErrorRow
from s11.validation.leave_out import LeaveOut
from s11.validation.published import ChunkOverhead, Published
from s11.validation.snapshot import Snapshot

Columns = dict[str, list[object]]
TITLES = {(q.file, q.quantity): title for title, q in QUANTITIES.items()}


def _columns(names: Iterable[str], rows: Iterable[Iterable[object]]) -> Columns:
    columns: Columns = {name: [] for name in names}
    for row in rows:
        for name, value in zip(columns, row, strict=True):
            columns[name].append(value)
    return columns


def error_columns(snapshot: Snapshot, left: LeaveOut) -> Columns:
    """Return every row of the validation, and the error on what its fit had not seen."""
    names = (
        "file", "quantity", "GPU", "rows", "points", "median (%)", "mean (%)", "p90 (%)",
        "bias (%)", "left out, mean (%)", "constants",
    )  # fmt: skip
    return _columns(
        names,
        (
            (
                row.file,
                TITLES[row.file, row.quantity],
                gpu_title(row.gpu),
                group_title(row.group),
                row.points,
                round(row.median_abs_error_pct, 1),
                round(row.mean_abs_error_pct, 1),
                round(row.p90_abs_error_pct, 1),
                round(row.bias_pct, 1),
                None if (unseen := left.error_pct(row)) is None else round(unseen, 1),
                "fitted on this GPU" if row.calibrated else "inherited",
            )
            for row in snapshot.rows
        ),
    )


def headline_columns(snapshot: Snapshot, left: LeaveOut) -> Columns:
    """Return the errors by quantity and GPU: median for whole runs, mean for kernels.

    Where an error on what the fit had not seen is there, it stands behind the fit's.
    """
    shown = [row for row in snapshot.rows if row.group in ("all", "0.05 ms and more", "vllm")]
    gpus = list(dict.fromkeys(gpu_title(row.gpu) for row in shown))
    cells: dict[tuple[str, str], str] = {}
    for row in shown:
        place, unseen = (headline_label(row), gpu_title(row.gpu)), left.error_pct(row)
        cells[place] = f"{_both(headline_pct(row), None)} ({row.points:,})"
        if unseen is None:
            continue
        if row.file == "end_to_end.csv":  # what was left out has a mean alone
            place = (f"{TITLES[row.file, row.quantity]}, vLLM runs, mean", place[1])
        cells[place] = f"{_both(row.mean_abs_error_pct, unseen)} ({row.points:,})"
    labels = sorted({label for label, _ in cells}, key=_order)
    return _columns(
        ("error: fit / left out (points)", *gpus),
        ((label, *(cells.get((label, gpu), "–") for gpu in gpus)) for label in labels),
    )


def _both(fit_pct: float, unseen_pct: float | None) -> str:
    return pct(fit_pct) if unseen_pct is None else f"{fit_pct:.1f} / {pct(unseen_pct)}"


def headline_pct(row: ErrorRow) -> float:
    """Return the error that stands for a row: median of whole runs, mean of kernels."""
    if row.file == "end_to_end.csv":
        return row.median_abs_error_pct
    return row.mean_abs_error_pct


def headline_label(row: ErrorRow) -> str:
    """Return what a row is called in the headline's table."""
    title = TITLES[row.file, row.quantity]
    if row.file == "end_to_end.csv":
        return f"{title}, vLLM runs, median"
    if row.group == "0.05 ms and more":
        return f"{title} from 0.05 ms, mean"
    return f"{title}, mean"


def _order(label: str) -> tuple[int, int]:
    titles = list(QUANTITIES)
    place = next(at for at, title in enumerate(titles) if label.startswith(title))
    return place, len(label)


def published_columns(rows: Iterable[Published]) -> Columns:
    """Return a paper's figures beside ours."""
    names = ("step", "part", "paper (ms)", "ours (ms)", "off (%)", "a check")
    return _columns(
        names,
        (
            (
                row.what,
                row.part,
                round(row.published_ms, 2),
                round(row.ours_ms, 2),
                round(row.error_pct, 1),
                _check_told(row),
            )
            for row in rows
        ),
    )


def _check_told(row: Published) -> str:
    if row.worked_out:
        return "no: worked out of rows above"
    return "no: fitted on it" if row.rests_on_it else "yes"


def overhead_columns(overheads: Iterable[ChunkOverhead]) -> Columns:
    """Return what chunking adds to a prefill, a row a prompt and a column a chunk size."""
    table: dict[int, dict[int, float]] = {}
    for one in overheads:
        table.setdefault(one.prompt_tokens, {})[one.chunk_tokens] = one.overhead_pct
    sizes = list(next(iter(table.values())))
    return _columns(
        ("prompt (tokens)", *(f"chunks of {size:,}" for size in sizes)),
        (
            (f"{prompt:,}", *(f"{by_size[size]:+.1f}%" for size in sizes))
            for prompt, by_size in table.items()
        ),
    )


def gpu_columns() -> Columns:
    """Return the catalog's GPUs: peaks, on what their constants rest, and sources."""
    names = (
        "GPU", "constants", "bf16 (TFLOP/s)", "fp8 (TFLOP/s)", "HBM (TB/s)", "memory (GiB)",
        "SMs", "L2 (MiB)", "link", "link (GB/s, one way)", "launched", "source: rates, year",
        "source: SMs, L2", "source: memory",
    )  # fmt: skip
    return _columns(
        names,
        (
            (
                gpu.title,
                constants_told(constants_of(gpu.name, "bf16")),
                round(gpu.bf16_flops_per_s / 1e12, 1),
                None if gpu.fp8_flops_per_s is None else round(gpu.fp8_flops_per_s / 1e12, 1),
                round(gpu.hbm_bytes_per_s / 1e12, 3),
                round(gpu.memory_bytes / 2**30, 2),
                gpu.sm_count,
                gpu.l2_bytes // 2**20,
                gpu.interconnect,
                round(gpu.interconnect_bytes_per_s / 1e9),
                str(gpu.launch_year),
                *(
                    address_of(gpu, name)
                    for name in ("hbm_bytes_per_s", "sm_count", "memory_bytes")
                ),
            )
            for gpu in GPUS.values()
        ),
    )


def constants_told(constants: KernelConstants) -> str:
    """Return on what a GPU's constants rest, in a few words."""
    if constants.inherits is None:
        return "fitted"
    if constants.calibrated:
        kernels = ", ".join(constants.inherited_kernels).replace("_", " ")
        return f"fitted, {kernels} apart"
    return f"not calibrated: as {GPUS[constants.inherits].title}"


def address_of(gpu: Gpu, field: str) -> str:
    """Return where the source of a GPU's number lies."""
    return next(source.address for source in gpu.sources if field in source.fields)


def model_columns() -> Columns:
    """Return the catalog's models: dimensions, what follows from them, and sources."""
    names = (
        "model", "weights (billion)", "layers", "hidden", "MLP width", "gated MLP", "heads",
        "KV heads", "head width", "vocabulary", "KV (KiB a token, bf16)", "longest (tokens)",
        "source",
    )  # fmt: skip
    return _columns(
        names,
        (
            (
                model.title,
                round(model.parameters() / 1e9, 2),
                model.layers,
                model.hidden,
                model.ffn,
                "yes" if model.gated else "no",
                model.heads,
                model.kv_heads,
                model.head_dim,
                model.vocab,
                round(model.kv_bytes_per_token() / 1024),
                model.max_positions,
                model.sources[0].address,
            )
            for model in MODELS.values()
        ),
    )


def as_markdown(columns: Mapping[str, list[object]]) -> str:
    """Return a small table in Markdown, numbers and texts as they are."""
    head = f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}"
    rows = zip(*columns.values(), strict=True)
    return "\n".join([head, *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)])
