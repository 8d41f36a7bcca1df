"""The words on rows and claims: their marks, and what each of them means in one sentence."""

from anatomy.table.intervals import (
    ONE_PROCESS_EFFECT,
    SAME_WITHIN,
    SEVERAL_PROCESSES,
    SMALLEST_EFFECT,
)
from anatomy.table.units import percent

# Verdict -> (mark, class). The mark and the word say it; the colour only repeats it.
CHIPS = {
    "slower": ("▲", "worse"),
    "faster": ("▼", "better"),
    "less": ("▼", "better"),
    "more": ("▲", "worse"),
    "same": ("=", "even"),
    "undecided": ("?", "open"),
    "impossible": ("!", "worse"),
    "control": ("●", "even"),
    "again": ("↺", "even"),
    "holds": ("✓", "better"),
    "fails": ("✗", "worse"),
    "holds in part": ("◐", "mixed"),
    "inconclusive": ("?", "open"),
    "not measurable here": ("–", "open"),
    "not recorded": ("○", "open"),
    "passes": ("✓", "better"),
    "void": ("✗", "worse"),
}
# What a reader must know of a row, in the order of its tags: how it was measured, and what keeps
# the call from being bound by its kernels.
TAGS = {
    "power-limited": "The power cap lowered the clock in some blocks.",
    "wide": "The interval is wider than aimed at; the time budget ran out.",
    "launch-inclusive": "Its launch is included: the call waits, or the host could not keep ahead.",
    "launch-bound": "The host needs about as long to ask for this call as the GPU to run it.",
    "gap-bound": "The GPU stands still for more than a tenth of the span.",
    "host-paced": "The host needs longer to ask for this than the GPU to run it: expect another "
    "figure on another host.",
}
_SHOWN = (
    f"The whole interval is {{}} 1, by more than the noise floor and {percent(SMALLEST_EFFECT)}; "
    f"under {percent(ONE_PROCESS_EFFECT, 1)}, {SEVERAL_PROCESSES} fresh processes must show it."
)
# Word -> the rule that it follows.
RULES = {
    "slower": _SHOWN.format("above"),
    "faster": _SHOWN.format("below"),
    "same": f"The whole interval is within {percent(SAME_WITHIN, 1)} of 1, in "
    f"{SEVERAL_PROCESSES} or more fresh processes.",
    "undecided": f"Neither shown to differ (the interval holds 1, or what is left is within the "
    f"noise, or too few processes saw it) nor to be within {percent(SAME_WITHIN, 1)} of 1. "
    "`… each time`: every occasion showed it, but the interval, which is widened for a machine "
    "that we have not seen, holds 1.",
    "less": "Counted, not timed: it needs less than the control.",
    "more": "Counted, not timed: it needs more than the control.",
    "impossible": "Faster than the machine's limit allows, so the measurement is wrong.",
    "control": "The others are compared with it.",
    "again": "The control once more: how far it strays from itself is the noise floor.",
    "holds": "What was recorded meets the claim's test in every case.",
    "fails": "What was recorded contradicts the claim.",
    "holds in part": "It is met in some of the cases recorded, and not in others.",
    "inconclusive": "The intervals allow both.",
    "not measurable here": "This machine lacks what it takes.",
    "not recorded": "The recordings that decide it are missing.",
    "passes": "Every error is within what is allowed.",
    "void": "An error is larger than allowed, so its time counts for nothing.",
}
