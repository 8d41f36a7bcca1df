"""Check a chain for a pointer chase:  python check.py [FILE]"""

import runpy
import sys
from pathlib import Path

FILE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("build.py"))
LINES = 1000


def visited(follows: list[int]) -> int:
    """How many different lines one sees from line 0 on before coming back to one."""
    seen, at = set(), 0
    while at not in seen and 0 <= at < len(follows):
        seen.add(at)
        at = follows[at]
    return len(seen)


try:
    chain = runpy.run_path(FILE)["chain"]
    follows = chain(LINES, seed=1)
except NotImplementedError:
    sys.exit("chain() is still to be written.")
if len(follows) != LINES or sorted(follows) != list(range(LINES)):
    sys.exit(f"The chain of {LINES} lines should lead to each line exactly once.")
if (found := visited(follows)) != LINES:
    sys.exit(
        f"From line 0 one comes back after {found} of {LINES} lines. A shuffled list is a "
        "permutation of several cycles; shuffle the order of the visit, and link that."
    )
near = sum(abs(after - here) <= 8 for here, after in enumerate(follows))
if near > LINES // 10:
    sys.exit(f"{near} of {LINES} lines lead to one nearby: a prefetcher could guess them.")
if chain(LINES, seed=1) != follows:
    sys.exit("The same seed should give the same chain.")
if chain(LINES, seed=2) == follows:
    sys.exit("Another seed should give another chain.")
print("One cycle, in random order. Right.")
