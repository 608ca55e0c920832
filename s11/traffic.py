"""`Traffic`: requests that are drawn, from arrivals, lengths and a seed."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.arrivals import Arrivals, ClosedLoopArrivals, arrivals_data, arrivals_from
from s11.checks import MAX_TIME_MS, MAX_TOKENS, require_int, require_keys
from s11.lengths import Lengths, lengths_data, lengths_from
from s11.workload import MAX_REQUESTS, Request, Workload

MAX_SEED = 2**63 - 1
DRAWS_PER_REQUEST = 100

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """`request_count` requests, the same ones for a seed at every rate.

    Arrivals, prompts and outputs are drawn independently, each from its own stream of PCG64
    numbers (NumPy's SeedSequence(seed).spawn(3)): another arrival process or rate leaves every
    length as it was, and the first N requests of a longer run are those of a shorter one.

    most_total_tokens: prompt and output together. A request that is longer is drawn again:
        passed over, and the next pair taken in its place.

    Raises:
        ValueError: a count, seed or bound out of range.
    """

    request_count: int
    arrivals: Arrivals
    prompt: Lengths
    output: Lengths
    seed: int = 0
    most_total_tokens: int | None = None

    def __post_init__(self) -> None:
        count = require_int("request_count", self.request_count, 1, MAX_REQUESTS)
        object.__setattr__(self, "request_count", count)
        object.__setattr__(self, "seed", require_int("seed", self.seed, 0, MAX_SEED))
        for name, kind in (("arrivals", Arrivals), ("prompt", Lengths), ("output", Lengths)):
            if not isinstance(getattr(self, name), kind):
                raise ValueError(f"{name}: {getattr(self, name)!r:.60} is none")
        if self.most_total_tokens is not None:
            most = require_int("most_total_tokens", self.most_total_tokens, 2, 2 * MAX_TOKENS)
            object.__setattr__(self, "most_total_tokens", most)

    def workload(self) -> Workload:
        """Return the requests, named "0", "1", … in the order in which they are drawn.

        Raises:
            ValueError: lengths that almost never fit the bound, arrivals too far away.
        """
        arrival_stream, *length_streams = [
            np.random.Generator(np.random.PCG64(seed))
            for seed in np.random.SeedSequence(self.seed).spawn(3)
        ]
        prompts, outputs = self._lengths(*length_streams)
        if isinstance(self.arrivals, ClosedLoopArrivals):
            return self._closed_loop(self.arrivals, prompts, outputs)
        times_ms = self.arrivals.times_ms(arrival_stream, self.request_count)  # (requests,)
        if times_ms[-1] > MAX_TIME_MS:
            raise ValueError(
                f"rate_per_s: {self.arrivals.rate_per_s:g} puts the last request beyond "
                f"{MAX_TIME_MS:g} ms (allowed: a higher rate or fewer requests)"
            )
        rows = zip(times_ms.tolist(), prompts.tolist(), outputs.tolist(), strict=True)
        return Workload(
            requests=tuple(
                [
                    Request(
                        request_id=str(number),
                        arrival_ms=time_ms,
                        prompt_tokens=prompt,
                        output_tokens=output,
                    )
                    for number, (time_ms, prompt, output) in enumerate(rows)
                ]
            )
        )

    def at_rate(self, rate_per_s: float) -> Traffic:
        """Return the same requests at another rate.

        Raises:
            ValueError: a rate out of range, clients who wait for their answers.
        """
        return replace(self, arrivals=self.arrivals.at_rate(rate_per_s))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `from_dict` reads back to equal traffic."""
        return {
            "request_count": self.request_count,
            "arrivals": arrivals_data(self.arrivals),
            "prompt": lengths_data(self.prompt),
            "output": lengths_data(self.output),
            "seed": self.seed,
            "most_total_tokens": self.most_total_tokens,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Traffic:
        """Return the traffic that `to_dict` described.

        Raises:
            ValueError: an unknown key, a value that is missing or of the wrong kind.
        """
        values = require_keys("traffic", data, {f.name for f in fields(cls)})
        for needed in ("request_count", "arrivals", "prompt", "output"):
            if needed not in values:
                raise ValueError(f"traffic: {needed} is missing")
        made = {
            "arrivals": arrivals_from(values["arrivals"]),
            "prompt": lengths_from("prompt", values["prompt"]),
            "output": lengths_from("output", values["output"]),
        }
        return cls(**values | made)

    def _closed_loop(self, arrivals: ClosedLoopArrivals, prompts: Ints, outputs: Ints) -> Workload:
        """Return the requests dealt out to the clients in turn."""
        clients = arrivals.clients
        return Workload(
            requests=tuple(
                [
                    Request(
                        request_id=str(number),
                        arrival_ms=arrivals.think_ms if number >= clients else 0.0,
                        prompt_tokens=prompt,
                        output_tokens=output,
                        after=str(number - clients) if number >= clients else None,
                    )
                    for number, (prompt, output) in enumerate(
                        zip(prompts.tolist(), outputs.tolist(), strict=True)
                    )
                ]
            )
        )

    def _lengths(
        self, prompt_stream: np.random.Generator, output_stream: np.random.Generator
    ) -> tuple[Ints, Ints]:  # (requests,), (requests,)
        """Draw pairs until there are enough within the bound."""
        count, most = self.request_count, self.most_total_tokens
        prompts = outputs = np.empty(0, dtype=np.int64)
        drawn = 0
        while len(prompts) < count:
            if drawn >= DRAWS_PER_REQUEST * count:
                raise ValueError(
                    f"most_total_tokens: {most:,} tokens leave {len(prompts):,} of {drawn:,} "
                    "drawn requests (allowed: a bound that 1 in 100 keeps)"
                )
            block = max(count - len(prompts), 1_000) if most else count
            prompt = self.prompt.draw(prompt_stream, block)
            output = self.output.draw(output_stream, block)
            fits = prompt + output <= most if most else np.ones(block, dtype=np.bool_)
            prompts = np.concatenate((prompts, prompt[fits]))
            outputs = np.concatenate((outputs, output[fits]))
            drawn += block
        return prompts[:count], outputs[:count]
