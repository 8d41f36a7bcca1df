"""How long does the GPU idle in a trace? Fill in the function, and run check.py.

Then try it on a trace of your own: python build.py trace.json
"""

import json
import sys

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")  # categories of what runs on the GPU


def idle_share(events):
    """Share of the time from the first kernel's start to the last one's end in which nothing runs.

    `events` is the list `traceEvents` of a Chrome trace. What ran on the GPU has a `cat` of ON_GPU,
    a start `ts` and a duration `dur`, both in microseconds; all other events don't matter. Two
    streams can run at the same time: that time counts once. Without any kernel it is None.
    """
    raise NotImplementedError


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(idle_share(json.load(file)["traceEvents"]))
