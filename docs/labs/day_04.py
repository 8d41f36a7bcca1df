# ---
# title: "Lab 4: where are your bytes?"
# nav: "4: Caches"
# description: A notebook for day 4 - find the caches of your GPU by reading working sets from kilobytes to gigabytes, and by chasing pointers through them.
# section: Curriculum / Labs
# order: 954
# index:
#   lab: "[4: Where are your bytes?](day_04.py)"
#   you measure: bandwidth and latency over the working set
#   takes on a GPU: a minute
# ---

# %% [markdown]
# # Where are your bytes, and how long do they take?
#
# Read a small working set again and again, then a larger one, until no cache holds it. The cliffs tell
# how large the caches are. The ideas are those of [day 4](../curriculum/day_04.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# How large is the L2 of your GPU? How many times as fast as from HBM does it read what fits? And how
# long does a single load from HBM take when nothing hides it?

# %%
times_guess = None  # such as 10
wait_guess = None  # seconds, such as 100e-9

# %% [markdown]
# ## Measure

# %%
ladder = measure("memory_ladder.bandwidth")
ladder.curve(
    x="working_set_bytes", y="rate", series="op", where={"op": ["read by all", "read in parts"]}
)

# %%
fast = ladder.row(op="read in parts", variant="8.00 MiB")["rate"]
slow = ladder.row(op="read in parts", variant="4.00 GiB")["rate"]
print(beside(times_guess, fast / slow, "times as fast from the L2"))

# %%
chase = measure("memory_ladder.latency")
chase.curve(x="working_set_bytes", y="latency_s", series="way", where={"way": "one thread"})

# %%
far = chase.row(way="one thread", variant="1.00 GiB")["latency_s"]
near = chase.row(way="one thread", variant="16.0 KiB")["latency_s"]
print(beside(wait_guess, far, "s"))
print(f"A load from the nearest cache takes {far / near:.0f} times less.")

# %% [markdown]
# ## Explain
#
# Bandwidth and latency have their cliffs at the same sizes, because both ask the same question: which
# is the nearest place that still has these bytes?
#
# By Little's law the loads under way must hold bandwidth times latency. For your HBM that is:

# %%
print(f"{slow * far / 2**20:.1f} MiB must be under way at any time to read HBM at full speed.")

# %% [markdown]
# <details><summary>How many threads is that, with one load of four bytes each?</summary>
#
# Divide by four. Compare it with the threads that your GPU holds at once: each needs several loads
# under way, or loads of sixteen bytes.
#
# </details>
#
# ## On your own
#
# Find the cliff of the L2 with PyTorch alone: sums over working sets that double. The bytes are given,
# so that the table shows what share of the machine's bandwidth each gets.

# %% tags=["yours"]
import torch

from anatomy import compare

device = "cuda:0" if torch.cuda.is_available() else "cpu"
sizes = [2**n for n in ((22, 24, 26, 28) if device != "cpu" else (12, 14, 16))]
tensors = {f"{4 * n / 2**20:g} MiB": torch.ones(n, device=device) for n in sizes}
compare(
    {name: lambda t=t: t.mean() for name, t in tensors.items()},
    bytes={name: 4 * t.numel() for name, t in tensors.items()},
    limit="read",
    op="mean",
    quantity="gpu_warm",
    device=device,
    budget_s=5,
    allowed=1e-3,
)
