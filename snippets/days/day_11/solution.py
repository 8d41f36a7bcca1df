"""One solution of build.py."""

import json
import sys

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")


# --8<-- [start:solution]
def idle_share(events):
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("cat") in ON_GPU)
    if not spans:
        return None
    begun, busy, reached = spans[0][0], 0.0, float("-inf")
    for start, end in spans:
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return 1 - busy / (reached - begun)


# --8<-- [end:solution]
if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(idle_share(json.load(file)["traceEvents"]))
