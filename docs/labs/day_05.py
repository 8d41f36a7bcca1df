# ---
# title: "Lab 5: what do strides and offsets cost?"
# nav: "5: Coalescing"
# description: A notebook for day 5 - what the 32 loads of a warp cost when they lie apart or begin off a mark, predicted by counting sectors and measured on your GPU.
# section: Curriculum / Labs
# order: 955
# index:
#   lab: "[5: What do strides and offsets cost?](day_05.py)"
#   you measure: bandwidth over the stride of a warp's loads
#   takes on a GPU: a quarter of a minute
# ---

# %% [markdown]
# # What do strides cost?
#
# A model that you can write in three lines, held against a measurement: a warp's loads cost the
# sectors that they touch. The ideas are those of [day 5](../curriculum/day_05.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# Memory moves in sectors of 32 bytes. A warp loads 32 floats that lie a stride apart. Which share of
# the bytes that move was asked for?


# %%
def share(stride):
    """Bytes asked for, over bytes of the sectors that hold them."""
    sectors = {4 * stride * thread // 32 for thread in range(32)}
    return 32 * 4 / (32 * len(sectors))


print({stride: round(share(stride), 3) for stride in (1, 2, 4, 8, 16, 32)})

# %% [markdown]
# The model says that the loss ends at a stride of eight. Do you believe it for sixteen?

# %%
sixteen_guess = None  # share of the bandwidth at stride 1, such as 0.1

# %% [markdown]
# ## Measure

# %%
strides = measure("coalescing.strides")
strides.curve(
    x="stride",
    y="rate",
    series="op",
    fit="predicted_rate",
    where={"op": ["one of each"]},
)


# %%
def rate(stride):
    return strides.row(op="one of each", variant=f"stride {stride}")["rate"]


print(beside(sixteen_guess, rate(16) / rate(1), "of the bandwidth at stride 1"))
for stride in (2, 4, 8, 16, 32):
    found = rate(stride) / rate(1)
    print(f"stride {stride:2}: predicted {share(stride):.3f}, measured {found:.3f}")

# %% [markdown]
# ## Explain
#
# Where do prediction and measurement part? There the memory moves larger pieces than a sector. Change
# the 32 bytes in `share` to 64, and run the cells again: does that fit better?
#
# <details><summary>And if the neighbours are read right afterwards?</summary>
#
# Then they are in a cache. The experiment has that case too, `op="all of them"`: look at its rows.
#
# </details>

# %%
strides.show(
    op="all of them",
    columns=["variant", "rate", "ratio"],
    rows=["stride 1", "stride 2", "stride 4", "stride 8", "stride 16", "stride 32"],
)

# %% [markdown]
# ## On your own
#
# The same in PyTorch: every eighth column of a matrix, against a matrix that holds only these.

# %% tags=["yours"]
import torch

from anatomy import compare

device = "cuda:0" if torch.cuda.is_available() else "cpu"
n = 2**13 if device != "cpu" else 2**8
wide = torch.randn(n, 8 * n, device=device)[:, ::8]
narrow = wide.contiguous()
compare(
    {"contiguous": lambda: narrow * 2, "every eighth": lambda: wide * 2},
    bytes=8 * n * n,
    op="A * 2",
    device=device,
    budget_s=5,
)

# %% [markdown]
# ## Where next?
#
# [Lab 6](day_06.py): how much arithmetic is free. Or choose among [all labs](index.md).
