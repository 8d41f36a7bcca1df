# ---
# title: "Lab 4: where are your bytes?"
# nav: "4: Caches"
# description: A notebook for day 4 - find the caches of your GPU by reading working sets from kilobytes to gigabytes, and by chasing pointers through them.
# section: Curriculum / Labs
# order: 954
# index:
#   lab: "[4: Where are your bytes?](day_04.py)"
#   you measure: "bandwidth and latency over the working set: how large your caches are, and what they give"
#   takes on a GPU: a minute
# ---

# %% [markdown]
# # Where are your bytes, and how long do they take?
#
# In the nearest place that still has them: the L1 cache of an SM, the L2 that all SMs share, or HBM. Read a
# small working set again and again, then larger ones, and the speed falls where a cache is full. The ideas are
# those of [day 4](../curriculum/day_04.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# - All SMs read the same lines: how many times as many bytes in a second come through the L2 as from HBM?
# - One thread reads, each load after the last one: how long does one load from HBM take?
# - How many MiB can that one thread go through before its loads get slower than the L2's?

# %%
times_guess = None  # such as 10
# in seconds, such as 100e-9
wait_guess = None
l2_guess = None  # MiB, such as 10

# %% [markdown]
# ## Measure
#
# First bandwidth. Each SM reads the whole set, or each reads its own part of it.

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
    caption="Bytes in a second. Upright: sizes of caches, by the device.",
)

# %% [markdown]
# 8 MiB don't fit the L1 of one SM. So where each SM reads all of them, they come through the L2:

# %%
fast = ladder.row(op="read by all", variant="8.00 MiB")["rate"]
slow = ladder.row(op="read in parts", variant="4.00 GiB")["rate"]
print(beside(times_guess, fast / slow, "times HBM's rate"))

# %% [markdown]
# One fetch may serve several SMs here. PyTorch's reads, each line once, get [[l2:read]] of the L2 and
# [[limit:read]] of HBM.
#
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
    caption="How long one thread waits for one load.",
)

# %%
held = chase.row(op="chase, levels", variant="level 2")
far = chase.row(way="one thread", variant="1.00 GiB")["latency_s"]
near = chase.row(way="one thread", variant="16.0 KiB")["latency_s"]
print("HBM:", beside(wait_guess, far, "s"))
print(f"  {far / near:.0f} times as long as from L1")
size = held["upto_bytes"] / 2**20
print("L2, for one thread:", beside(l2_guess, size, "MiB"))

# %% [markdown]
# ## Explain
#
# Why do the edges lie where they do?
#
# - **Each reads its own part**: all L1 caches hold the set together, so the first fall comes at the sum of all.
# - **Each reads all**: the first fall comes at the L1 of *one* SM, and it is a slope: while a part of the set
#   is still in L1, only the rest comes from the L2. One fetch from the L2 may then serve several SMs, so this
#   curve is no measure of the L2 alone.
# - **One thread** gets slower before the L2 is full. Our guess: the L2 has two parts, and an SM keeps its
#   lines in the nearer.

# %% tags=["drawn"]
from anatomy.page import memory_ladder

caption = "Where bytes lie, how many come in a second, and after what wait."
print(memory_ladder(caption=caption))

# %% [markdown]
# Nobody gets HBM's bandwidth with one load at a time. By Little's law, bandwidth times latency must be under
# way at once. By the two numbers above:

# %%
least = slow * far / 2**20
print(f"At least {least:.1f} MiB must be under way for HBM's rate.")

# %% [markdown]
# (Day 4 takes PyTorch's best reduction for the bandwidth: [[calculated: bytes-in-flight]].)
#
# <details><summary>How many threads is that, with one load of four bytes each?</summary>
#
# Divide by four, and compare with the threads that your GPU holds at once: on an H100 or H200 132 × 2,048, some
# 270,000<!-- given: the data sheet -->. They don't load all the time, either. So each needs several loads under way, or
# loads of sixteen bytes.
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
# - [Lab 5](day_05.py): what 32 loads of a warp cost when they lie apart.
# - [Day 4](../curriculum/day_04.md): writes, and why a slope and not a cliff.
# - [All labs](index.md).
