"""The semantics of DESIGN.md, the slow and plain way: an object per request, a loop per step.

Nothing is counted, jumped over or filed by step number. Each request, streaming users too,
keeps the time of each of its own tokens, and the very blocks that hold its KV.
"""

import math

from s11 import Experiment
from tests.reference_blocks import prompts
from tests.reference_plan import Call
from tests.reference_worker import CutError, Step, Worker


class ReferenceRun:
    """A run of an experiment."""

    def __init__(self, experiment: Experiment, max_steps: float = math.inf) -> None:
        workload = experiment.workload
        self.experiment = experiment
        self.calls: list[Call] = []
        self.stopped = False
        # Every user's last token came at t = 0.
        self.users = [
            Call(
                row=-1,
                name=f"user-{n}",
                prompt=(),
                output_tokens=math.inf,
                arrival_ms=0.0,
                token_times_ms=[0.0],
                decoding=True,
                in_cache=workload.user_context_tokens,
            )
            for n in range(1, workload.streaming_users + 1)
        ]
        apart = experiment.policy == "disaggregated"
        policy = "handed_over" if apart else experiment.policy
        self.worker = Worker(experiment, policy, self.users, max_steps)
        self.prefill_worker: Worker | None = None
        if apart:
            self.prefill_worker = Worker(experiment, "chunked", [], max_steps)
        try:
            self._run()
        except CutError:
            self.stopped = True

    def _run(self) -> None:
        workload, worker = self.experiment.workload, self.worker
        worker.idle_steps(workload.lead_in_steps)
        prompt = prompts(workload)
        self.calls = [
            Call(
                row=row,
                name=request.request_id,
                prompt=prompt[request.request_id],
                output_tokens=request.output_tokens,
                arrival_ms=worker.now_ms + request.arrival_ms
                if request.after is None
                else math.nan,
                after=request.after,
                delay_ms=request.arrival_ms,
            )
            for row, request in enumerate(workload.requests)
        ]
        for call in self.calls:
            call.seen_ms = call.arrival_ms
        worker.serve(self.calls if self.prefill_worker is None else self._hand_over())
        worker.idle_steps(workload.tail_steps)

    def _hand_over(self) -> list[Call]:
        """Prefill all prompts elsewhere; return those that got through, with their KV."""
        assert self.prefill_worker is not None
        wanted = [call.output_tokens for call in self.calls]
        for call in self.calls:
            call.output_tokens = 1
        self.prefill_worker.now_ms = self.worker.now_ms
        self.prefill_worker.serve(self.calls)
        through = []
        for call, output_tokens in zip(self.calls, wanted, strict=True):
            call.output_tokens = output_tokens
            if call.token_times_ms:
                travel_ms = self.experiment.hand_over.duration_ms(call.prompt_tokens)
                call.seen_ms = call.token_times_ms[0] + travel_ms
                call.token_times_ms = [call.seen_ms]
                through.append(call)
        return through

    @property
    def steps(self) -> list[Step]:
        return self.worker.steps

    @property
    def admissions(self) -> list[tuple[int, str, int]]:
        return self.worker.admissions

    @property
    def preemptions(self) -> list[tuple[int, str]]:
        return self.worker.preemptions

    def schedule(self) -> list[dict[str, int]]:
        return self.worker.schedule()

    def rejected(self) -> list[Call]:
        return [call for call in self.calls if call.rejected]

    def never_scheduled(self) -> list[Call]:
        unseen = [call for call in self.calls if math.isnan(call.first_scheduled_ms)]
        return [] if self.stopped else [call for call in unseen if not call.rejected]

    def never_finished(self) -> list[Call]:
        begun = [call for call in self.calls if not math.isnan(call.first_scheduled_ms)]
        return [] if self.stopped else [call for call in begun if not call.done]


def naive_percentile(values: list[float], percent: int) -> float | None:
    """The smallest value such that `percent` of all values or more are not above it."""
    for not_above, value in enumerate(sorted(values), start=1):
        if 100 * not_above >= percent * len(values):
            return value
    return None
