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
# In the nearest place that still has them: the L1 cache of an SM, the L2 that all SMs share, or HBM. Read a
# small working set again and again, then a larger one, and the speed falls where a cache is full. What each
# place delivers [day 4](../curriculum/day_04.md) draws; guess before you look.

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# How large is the L2, as far as one thread can use it? How many times as fast as from HBM do all SMs get
# a set that only the L2 holds? And how long does a single load from HBM take when nothing hides it?

# %%
l2_guess = None  # MiB, such as 10
times_guess = None  # such as 10
wait_guess = None  # seconds, such as 100e-9

# %% [markdown]
# ## Measure
#
# First bandwidth. Each SM reads the whole set, or each reads its own part of it. Upright, on this site:
# what the device says that a cache holds.

# %%
ways = ["read by all", "read in parts"]
l1 = 'memory_ladder.levels."L1 and shared memory"'
ladder = measure("memory_ladder.bandwidth")
ladder.curve(
    x="working_set_bytes",
    y="rate",
    series="op",
    where={"op": ways},
    edges={
        "L1 of one SM": f"{l1}.sm_bytes",
        "all L1": f"{l1}.gpu_bytes",
        "L2": "machine:l2_bytes",
    },
)

# %% [markdown]
# 8 MiB don't fit the L1 of one SM. So where each SM reads all of them, they come from the L2:

# %%
fast = ladder.row(op="read by all", variant="8.00 MiB")["rate"]
slow = ladder.row(op="read in parts", variant="4.00 GiB")["rate"]
print(beside(times_guess, fast / slow, "times HBM's rate"))

# %% [markdown]
# Then latency. One thread follows a chain of addresses, and each load waits for the one before.

# %%
chase = measure("memory_ladder.latency")
chase.curve(
    x="working_set_bytes",
    y="latency_s",
    series="way",
    where={"way": "one thread"},
    edges={
        "L1 of one SM": f"{l1}.sm_bytes",
        "L2": "machine:l2_bytes",
    },
)

# %%
held = chase.row(op="chase, levels", variant="level 2")
far = chase.row(way="one thread", variant="1.00 GiB")["latency_s"]
near = chase.row(way="one thread", variant="16.0 KiB")["latency_s"]
print(beside(l2_guess, held["upto_bytes"] / 2**20, "MiB in the L2"))
print(beside(wait_guess, far, "s"))
print(f"A load from L1 takes {far / near:.0f} times less.")

# %% [markdown]
# ## Explain
#
# The L1 of one SM shows in both charts, near what the device says. The other edges differ, because the
# readers do. Where each SM reads its own part, all L1 caches hold the set together. Where all read the
# same lines, one fetch from the L2 may serve several SMs, so 8 MiB come faster than the L2 itself may
# deliver. And one thread leaves the level of the L2 before the L2 is full: our guess is that the L2 has
# two parts, and that an SM keeps its lines in the nearer.
#
# By Little's law bandwidth times latency must be under way. For your HBM, by the two numbers above:

# %%
print(f"{slow * far / 2**20:.1f} MiB must be under way for HBM's rate.")

# %% [markdown]
# Day 4 takes PyTorch's best reduction for the bandwidth: [[calculated: bytes-in-flight]] on the
# [[machine:gpu]].
#
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
powers = (22, 24, 26, 28) if device != "cpu" else (12, 14, 16)
made = {n: torch.ones(2**n, device=device) for n in powers}
tensors = {f"{4 * 2**n / 2**20:g} MiB": x for n, x in made.items()}
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

# %% [markdown]
# ## Where next?
#
# [Lab 5](day_05.py): what 32 loads of a warp cost when they lie apart.
