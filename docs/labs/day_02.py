# ---
# title: "Lab 2: how many blocks at once?"
# nav: "2: Blocks and SMs"
# description: A notebook for day 2 - find the number of SMs of your GPU by timing a kernel, and see what it takes to hide the wait for memory.
# section: Curriculum / Labs
# order: 952
# index:
#   lab: "[2: How many blocks run at once?](day_02.py)"
#   you measure: "run time over the number of blocks, and bandwidth over occupancy: why the last wave costs a whole one"
#   takes on a GPU: half a minute
# ---

# %% [markdown]
# # How many blocks does your GPU run at once?
#
# Find the number of SMs of a GPU without asking it, only by a clock. Then see how many loads must be
# under way to read memory at full speed. The ideas are those of [day 2](../curriculum/day_02.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# A kernel does the same work in every block, and only one block fits on an SM. Launch it with one
# block, with two, and so on: how does the time grow? Sketch it. Then write down the number of blocks
# at which it first jumps on your GPU, and by what factor.

# %%
blocks_guess = None  # such as 100
factor_guess = None  # such as 1.1

# %% [markdown]
# ## Measure

# %%
stairs = measure("occupancy.staircase")
stairs.curve(
    x="grid_blocks",
    y="median_s",
    series="op",
    where={"op": "one block an SM", "role": ["control", "variant"]},
    even=True,
    caption="How long the GPU takes for so many blocks of equal work.",
)

# %%
full = stairs.row(op="one block an SM", edge="full")
more = stairs.row(op="one block an SM", edge="one more")
print(beside(blocks_guess, full["at_once"], "blocks"))
factor = more["median_s"] / full["median_s"]
print(beside(factor_guess, factor, "times the time for one block more"))

# %% [markdown]
# ## Explain
#
# The first jump comes where every SM has its block and one is left over: it waits for the next *wave*. So
# the width of a step is the number of SMs.

# %% tags=["drawn"]
from anatomy.figures.diagrams.warps import block_waves

print(block_waves())

# %% [markdown]
# Four SMs are drawn; the times are measured, of a full wave and of one block more. The second is not quite
# twice the first, because a launch has a start and an end that it pays only once.
#
# <details><summary>What would you launch: a full wave and a bit, or two full waves?</summary>
#
# Two full waves, for they take as long as a wave and one block. If you may choose the size of a block's
# work, choose it so that the last wave is full, or so small that a wave is short.
#
# </details>
#
# ## Predict: how many loads keep the memory busy?
#
# An SM has room for eight blocks of the next kernel, which only reads. Put one there instead: an occupancy
# of one eighth. Which share of the best bandwidth is left if each thread has one load under way, and which
# if it has sixteen?

# %%
# shares of 1, such as 0.5
one_guess, sixteen_guess = None, None

# %%
reads = measure("occupancy.throughput")
reads.curve(
    x="occupancy",
    y="rate",
    series="loads_each",
    caption="Bandwidth over occupancy, by each thread's loads under way.",
)

# %%
few = reads.row(loads_each="1 load at a time", blocks_per_sm=1)["rate"]
many, sixteen = "16 loads at a time", []
for n in (1, 2, 4, 8):
    row = reads.row(loads_each=many, blocks_per_sm=n)
    sixteen.append(row["rate"])
most = max(sixteen)
print(beside(one_guess, few / most, "% of the best, with one load"))
print(beside(sixteen_guess, sixteen[0] / most, "% of the best, with 16"))

# %% [markdown]
# What keeps memory busy is loads under way, whoever asked for them: more warps, or more loads of each warp.

# %% tags=["drawn"]
from anatomy.figures.diagrams.warps import hidden_waits

print(hidden_waits())

# %% [markdown]
# A sketch of one SM, time to the right. Green: a warp computes; then it waits for its load. Blue: the SM is
# busy, with one warp or another.
#
# ## On your own
#
# Double the rows of a softmax, from one for each SM to sixteen: up to where is the time hardly longer? PyTorch
# chooses the blocks here, and several share an SM. (A sum runs behind it, so that results can be compared.)

# %% tags=["yours"]
import torch

from anatomy import compare

device = "cuda:0" if torch.cuda.is_available() else "cpu"
rows = 8
if device != "cpu":
    rows = torch.cuda.get_device_properties(0).multi_processor_count


def share_of_a_row(x):
    return torch.softmax(x, dim=1).sum().view(1) / x.shape[0]


tensors = {}
for n in (1, 2, 4, 8, 16):
    tensors[f"{n} rows an SM"] = torch.randn(n * rows, 8192, device=device)
compare(
    {name: lambda t=t: share_of_a_row(t) for name, t in tensors.items()},
    op="softmax",
    quantity="gpu_warm",
    device=device,
    budget_s=5,
    allowed=1e-3,
)

# %% [markdown]
# ## Where next?
#
# - [Lab 3](day_03.py): what a launch costs.
# - [Day 2](../curriculum/day_02.md): the same staircase with room for several blocks on an SM.
# - [All labs](index.md).
