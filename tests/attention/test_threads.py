"""Bit identity must hold at every BLAS thread count, which only a fresh process can choose."""

import json
import os
import subprocess
import sys

import pytest

CHUNK_SIZES = [1, 3, 7, 64, 100, 128, 255, 256, 299, 300]
SCRIPT = """
import json
from s11.attention import Decoder, check_chunk_sizes, verify_execution
from tests.attention.schedules import random_schedule

decoder = Decoder()
checks = check_chunk_sizes(tokens=300, chunk_sizes={sizes}, decoder=decoder)
served = random_schedule(18, decoder, most_requests=8, longest_prompt=300, steps=30)
comparisons = verify_execution(
    served.schedule,
    served.prompts,
    decoder=decoder,
    output_tokens=served.output_tokens,
    already_prefilled=served.already_prefilled,
)
print(json.dumps({{
    "identical": [check.tiled.identical for check in checks],
    "within_rounding": [check.plain_within_rounding for check in checks],
    "served_as_alone": [comparison.identical for comparison in comparisons.values()],
}}))
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_identical_bits_at_every_thread_count(root, threads):
    variables = ("OPENBLAS", "OMP", "MKL", "VECLIB", "BLIS")
    environment = os.environ | {f"{name}_NUM_THREADS": str(threads) for name in variables}
    environment["VECLIB_MAXIMUM_THREADS"] = str(threads)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(sizes=CHUNK_SIZES)],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["identical"] == [True] * len(CHUNK_SIZES)
    assert report["within_rounding"] == [True] * len(CHUNK_SIZES)
    assert len(report["served_as_alone"]) == 8
    assert all(report["served_as_alone"])
