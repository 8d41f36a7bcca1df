# ---
# title: "Lab 7: which roof is over it?"
# nav: "7: Your roofline"
# description: A notebook for day 7 - place PyTorch operations under the roofs of your own GPU, and find out where a better kernel could save time.
# section: Curriculum / Labs
# order: 957
# index:
#   lab: "[7: Which roof is over it?](day_07.py)"
#   you measure: "PyTorch operations under the roofs of your GPU: where a better kernel could save time"
#   takes on a GPU: a quarter of a minute, and two minutes for the roofs
# ---

# %% [markdown]
# # Which roof is over it?
#
# An operation must move its bytes and do its arithmetic. The longer of these two times is the least that it can
# take, and the speed that goes with it is its *roof*. How near do PyTorch's own come? The ideas are those of
# [day 7](../curriculum/day_07.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# Which share of its roof do these reach: `relu` on a large tensor, `softmax` over its rows, and a large
# matmul in bf16?

# %%
# shares of 1, such as 0.5
guesses = {"relu": None, "softmax": None, "matmul, bf16": None}

# %% [markdown]
# ## Measure
#
# Shares are of your machine's own roofs. On your GPU measure those first, once:
# `pytorch-gpu-anatomy limits-ceilings --save recordings`.

# %%
operations = measure("roofline.operations")
for name, guess in guesses.items():
    share = operations.row(variant=name)["share"]
    print(f"{name:13}", beside(guess, share, "% of its roof"))

# %% tags=["drawn"]
from anatomy.chapters.roofline import figures

some = ["matmul, bf16", "attention", "sum"]
some += ["layer_norm", "softmax", "relu"]
print(
    figures.operations(
        some,
        caption="Speed over the operations on each byte that must move. "
        "On the slope memory is the roof, on a flat line arithmetic.",
    )
)

# %%
names = ["relu", "gelu", "sum", "softmax"]
names += ["layer_norm", "cumsum", "transposed copy", "sort"]
operations.show(
    columns=["variant", "median_s", "share"],
    rows=[*names, "matmul, bf16"],
    caption="The limit: a copy, a read, or the best of matmuls.",
)

# %% [markdown]
# A matmul's roof was itself measured with matmuls, the best of several sizes. So a full share says that this one is as
# good as those, and not that no better one could be.

# %% [markdown]
# ## Explain
#
# What matters for your program is not the share but the time above the least: a better kernel can save no more
# than that.

# %%
above = {}
for name in names:
    row = operations.row(variant=name)
    above[name] = row["median_s"] * (1 - row["share"])
print("µs above the least")
for name in sorted(above, key=above.get, reverse=True)[:5]:
    print(f"{name:16}{above[name] * 1e6:6.0f}")

# %% [markdown]
# <details><summary>Why is a sort so far away, and is that anyone's fault?</summary>
#
# Nobody's. The roof counts one read and one write of each element. A radix sort goes through all elements once
# for each digit: its own least is several such trips. A roof is only as good as the count under it.
#
# </details>
#
# ## On your own
#
# Your own operation: count its bytes, and it gets its share.

# %% tags=["yours"]
import torch

from anatomy import compare

device = "cuda:0" if torch.cuda.is_available() else "cpu"
n = 4096 if device != "cpu" else 128
a, b = torch.randn(2, n, n, device=device)
compare(
    {"a + b": lambda: a + b, "a.t() + b": lambda: a.t() + b},
    reference={"a + b": lambda: a + b, "a.t() + b": lambda: a.t() + b},
    bytes=12 * n * n,
    op="addition",
    device=device,
    budget_s=5,
)

# %% [markdown]
# ## Where next?
#
# - [Lab 10](day_10.py): what it costs to read one number from the GPU.
# - [Which technique should I try?](../axioms.md), by what holds your step back.
# - [All labs](index.md).
