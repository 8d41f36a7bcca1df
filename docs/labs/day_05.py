# ---
# title: "Lab 5: what do strides cost?"
# nav: "5: Coalescing"
# description: A notebook for day 5 - what the 32 loads of a warp cost when they lie apart, predicted by counting sectors and measured on your GPU.
# section: Curriculum / Labs
# order: 955
# index:
#   lab: "[5: What do strides cost?](day_05.py)"
#   you measure: "bandwidth over the stride of a warp's loads: what memory moves that nobody asked for"
#   takes on a GPU: a quarter of a minute
# ---

# %% [markdown]
# # What do strides cost?
#
# Write a model in three lines, and hold it against a measurement: a warp's loads cost the *sectors* that they
# touch, pieces of 32 bytes. The ideas are those of [day 5](../curriculum/day_05.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# Say that memory moves in sectors of 32 bytes. The 32 threads of a warp load a float each, a stride apart.
# Which share of the bytes that move was asked for?


# %%
def share(stride, piece=32):
    """Bytes asked for, over bytes of the pieces that hold them."""
    pieces = {4 * stride * thread // piece for thread in range(32)}
    return 32 * 4 / (piece * len(pieces))


for stride in (1, 2, 4, 8, 16, 32):
    print(f"stride {stride:2}: {share(stride):.3f}")

# %% tags=["drawn"]
from anatomy.chapters.coalescing.figures import touched

print(
    touched(
        [(1, 0), (2, 0), (8, 0)],
        caption="The sectors that a load touches, and the bandwidth.",
    )
)

# %% [markdown]
# The model says that the loss ends at a stride of eight. Do you believe it for sixteen?

# %%
# of the rate at stride 1, such as 0.1
sixteen_guess = None

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
    caption="Bytes asked for in a second. Dashed: what the model says.",
)


# %%
def rate(stride):
    row = strides.row(op="one of each", variant=f"stride {stride}")
    return row["rate"]


print("stride 16:", beside(sixteen_guess, rate(16) / rate(1), "%"))

# %% [markdown]
# ## Explain
#
# Where do model and measurement part? Suppose that memory moves two sectors at once, pieces of 64 bytes:

# %%
print("stride  32 bytes  64 bytes  measured")
for stride in (2, 4, 8, 12, 16, 32):
    said = [share(stride), share(stride, piece=64)]
    said += [rate(stride) / rate(1)]
    print(f"{stride:6}" + "".join(f"{each:10.3f}" for each in said))

# %% [markdown]
# [[when claim:pieces-predict-strides is holds]]
#
# Pieces of 64 bytes fit at every stride.
#
# [[when holds in part]]
#
# Pieces of 64 bytes fit until the loads lie far apart. Toward stride 32 even they promise too much; why was not
# recorded.
#
# [[when fails, inconclusive, not measurable here]]
#
# Compare the last two columns. That pieces of 64 bytes fit at *every* stride is not shown here: look at the last row.
#
# [[end]]
#
# ## And if the neighbours are read right afterwards?
#
# Let each thread read as many neighbouring floats as the stride is long, one after the other. All bytes that move
# are used then, if a cache keeps them for so long:

# %%
strides.show(
    op="all of them",
    columns=["variant", "rate", "ratio"],
    rows=[f"stride {each}" for each in (1, 2, 4, 8, 16, 32)],
    caption="Bytes asked for in a second, and the time.",
)

# %% [markdown]
# [[when claim:strides-are-cheap-if-all-is-used is holds]]
#
# The cache keeps them: what one request wasted, the next ones use.
#
# [[when holds in part]]
#
# The cache keeps them, up to stride 8. Beyond, one request touches 16 or 32 lines, and L1 takes about a clock for each
# of them
# ([day 5](../curriculum/day_05.md)).
#
# [[when fails, inconclusive, not measurable here]]
#
# That a cache gives back more than a part is not shown here.
#
# [[end]]
#
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
    {
        "contiguous": lambda: narrow * 2,
        "every eighth": lambda: wide * 2,
    },
    bytes=8 * n * n,
    op="A * 2",
    device=device,
    budget_s=5,
)

# %% [markdown]
# ## Where next?
#
# - [Lab 6](day_06.py): how much arithmetic is free.
# - [Memory layouts](../benchmarks/c01_tensor_semantics.md): what strides do to PyTorch's own operations.
# - [All labs](index.md).
