"""A million requests on one core: CPU time in the unit of `python -m s11 bench`, and memory.

python benchmarks/million.py [--requests 1000000] [--rate-per-s 4.5]
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from s11.arrivals import PoissonArrivals
from s11.bench import calibrate, cpu_seconds, loads, peak_memory_bytes
from s11.simulator import DEFAULT_MAX_STEPS, simulate
from s11.traffic_presets import TRAFFIC_PRESETS

ALL_ON = list(loads().values())[1][0]  # KV blocks, preemption, reasons
MIB = 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--rate-per-s", type=float, default=4.5)
    options = parser.parse_args()
    arrivals = PoissonArrivals(rate_per_s=options.rate_per_s)
    preset = TRAFFIC_PRESETS["azure-conv-2023"]
    workload = preset.traffic(request_count=options.requests, arrivals=arrivals).workload()
    experiment = replace(ALL_ON, workload=workload)
    calibration_s = min(cpu_seconds(calibrate) for _ in range(3))
    before = peak_memory_bytes() or 0
    results = []
    cpu_s = cpu_seconds(lambda: results.append(simulate(experiment, max_steps=DEFAULT_MAX_STEPS)))
    after = peak_memory_bytes() or 0
    (result,) = results
    read_s = cpu_seconds(lambda: result.requests.columns())
    assert not np.isnan(result.requests.last_token_ms).any(), "every request finished"
    print(f"{options.requests:,} requests, {len(result.steps):,} steps")
    print(f"{cpu_s:.1f} s of one core, {cpu_s / calibration_s:,.0f} loops of {calibration_s:.3f} s")
    print(f"and {read_s:.1f} s more for every request's times")
    peaks = (before, after, peak_memory_bytes() or 0)
    told = [f"{peak / MIB:,.0f}" for peak in peaks]
    print(f"memory: {told[0]} MiB with the requests, {told[1]} at the most, {told[2]} with times")


if __name__ == "__main__":
    main()
