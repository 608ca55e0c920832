"""Scene 6: decodes aboard a prefill step use weights that are read anyway."""

from __future__ import annotations

from s11.catalog import MODELS, Deployment
from s11.figures.learn_look import projected
from s11.figures.piggyback_looks import nice_above
from s11.figures.piggyback_ride import TEXT_ROOM, fine_ms, ride_alt, ride_figure
from s11.figures.piggyback_tables import ride_columns
from s11.learn_scene import Control, Link, Scene, Shown
from s11.piggyback_rides import Ride, ride
from s11.words import count, ms, times

MACHINE = Deployment(model=MODELS["llama-3.1-8b"], gpu="h100")
PREFILL_TOKENS, CONTEXT_TOKENS = 992, 1024
DECODES = (1, 4, 8, 16, 32, 64, 128)
WIDE_HEIGHT = 500
LEGEND_ENTRY = 120  # px: two in a row on a phone


def riding(decodes: int) -> Ride:
    """Return what decodes cost aboard the scene's prefill step, and in one of their own."""
    return ride(
        MACHINE,
        prefill_tokens=PREFILL_TOKENS,
        start_token=0,
        decodes=decodes,
        context_tokens=CONTEXT_TOKENS,
    )


def mix(decodes: int) -> Shown:
    """Return the scene: a decode aboard against one in a step of its own."""
    told, most = riding(decodes), riding(DECODES[-1])
    spec = ride_figure(told, MACHINE)
    spec["layout"]["legend"]["entrywidth"] = LEGEND_ENTRY
    spec["layout"]["xaxis"]["range"] = [0, nice_above(TEXT_ROOM * max(most.step_ms))]
    one = decodes == 1
    riders = "The decode rides" if one else f"The {decodes:,} decodes ride"
    each = "" if one else " each"
    cheaper = "by nothing" if told.factor is None else f"by {fine_ms(told.aboard_ms)}{each}"
    factor = "" if told.factor is None else f", {times(told.factor)} less"
    return Shown(
        spec=projected(spec, height=WIDE_HEIGHT),
        alt=ride_alt(told, MACHINE),
        sentences=(
            f"Alone, {count(decodes, 'decode')} {'takes' if one else 'take'} a step of "
            f"{ms(told.step_ms[2])}{'' if one else f', {fine_ms(told.alone_ms)} each'}; "
            f"{ms(float(told.parts.linear_ms[2]))} of it are the layers' products, which read all "
            "the weights for however few tokens.",
            f"{riders} in a step that reads them for {PREFILL_TOKENS} prompt tokens anyway: it "
            f"grows from {ms(told.step_ms[0])} to {ms(told.step_ms[1])}, {cheaper}{factor}.",
        ),
        columns=ride_columns(told),
        link=Link(
            label="Every chunk, context and machine, in Piggybacking",
            page="piggybacking",
            parameters={"piggy_chunk": str(PREFILL_TOKENS), "decodes": str(decodes)},
        ),
    )


MIX = Scene(
    slug="mix",
    headline="Decodes ride along: the weights are read anyway",
    control=Control(
        key="riders",
        label="Decodes in the step",
        options=DECODES,
        default=8,
        about=f"Each has {CONTEXT_TOKENS:,} tokens of context.",
    ),
    show=mix,
)
