# ---
# title: "Lab 6: how much arithmetic is free?"
# nav: "6: The ridge"
# description: A notebook for day 6 - put more and more multiply-adds on each element until memory is no longer what the kernel waits for, and find the ridge of your GPU.
# section: Curriculum / Labs
# order: 956
# index:
#   lab: "[6: How much arithmetic is free?](day_06.py)"
#   you measure: "run time over the multiply-adds on each element: where memory stops being the limit"
#   takes on a GPU: a few seconds
# ---

# %% [markdown]
# # How much arithmetic is free?
#
# A kernel reads a float, does some multiply-adds on it and writes it back. It moves the bytes of a copy,
# however much it computes: so some arithmetic hides behind the memory. The ideas are those of
# [day 6](../curriculum/day_06.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# How many multiply-adds can each element carry until the kernel takes a tenth longer? Your card's data sheet has
# two numbers that help: bytes in a second, and fp32 operations in a second. A multiply-add is two operations, an
# element eight bytes.

# %%
free_guess = None  # such as 4

# %% [markdown]
# ## Measure

# %%
sweep = measure("roofline.intensity")
sweep.curve(
    x="fmas",
    y="median_s",
    series="op",
    caption="Time over the multiply-adds (FMAs) on each element.",
)

# %%
fmas = [1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 128, 256, 512, 1024]
name = {n: "1 FMA" if n == 1 else f"{n} FMAs" for n in fmas}
time = {n: sweep.row(variant=name[n])["median_s"] for n in fmas}
free = [n for n in fmas if time[n] <= 1.1 * time[1]]
print("The most that take at most a tenth longer than one:")
print(beside(free_guess, max(free, default=1), "multiply-adds"))

# %% [markdown]
# ## Explain
#
# The kernel does two things at once, and takes at least as long as the longer of them:

# %% tags=["drawn"]
from anatomy.chapters.roofline.figures import clocks

print(
    clocks(
        fmas=[16, 64, 256],
        caption="Bars: bytes at a copy's bandwidth, arithmetic at "
        "the best rate of this sweep. Upright mark: when it was done.",
    )
)

# %% [markdown]
# Both bars are straight lines over the number of multiply-adds. Take the lines from the ends of your sweep: where
# do they cross?

# %%
moved = sweep.row(variant="1 FMA")["bytes"]
bandwidth = moved / time[1]
peak = sweep.row(variant="1024 FMAs")["flops"] / time[1024]
elements = moved / 8  # a float read, a float written
print(f"{bandwidth / 1e12:.2f} TB/s and {peak / 1e12:.1f} TFLOP/s")
ridge = peak / bandwidth
print(f"They cross at {ridge:.1f} FLOP/B, {ridge * 4:.0f} multiply-adds.")
for n in (16, 64, 80, 256):
    least = max(moved / bandwidth, 2 * n * elements / peak)
    beyond = time[n] / least
    print(f"{n:4} multiply-adds: {beyond:.2f} times the longer bar")

# %% [markdown]
# That crossing is the *ridge*. (Day 6 takes medians of several points, and gets a slightly different one.)
#
# <details><summary>Where does the kernel take longest, beside the longer bar?</summary>
#
# On our machines near the ridge, where both bars are about as long. Our guess: then any moment in which one waits
# for the other is lost, while far from the ridge the longer one always has work. It was not tested.
#
# </details>
#
# ## On your own
#
# Which of these has arithmetic that is free on your GPU? Guess before you run it.

# %% tags=["yours"]
import torch

from anatomy import compare

device = "cuda:0" if torch.cuda.is_available() else "cpu"
x = torch.rand(2**26 if device != "cpu" else 2**14, device=device)
out = torch.empty_like(x)
compare(
    {
        name: lambda f=f: f(x, out=out)
        for name, f in {
            "neg": torch.neg,
            "exp": torch.exp,
            "sin": torch.sin,
            "lgamma": torch.lgamma,
        }.items()
    },
    reference={
        "neg": lambda: -x,
        "exp": lambda: x.exp(),
        "sin": lambda: x.sin(),
        "lgamma": lambda: x.lgamma(),
    },
    bytes=8 * x.numel(),
    op="elementwise",
    device=device,
    budget_s=5,
)

# %% [markdown]
# ## Where next?
#
# - [Lab 7](day_07.py): which roof is over an operation.
# - [torch.compile](../axioms/compile.md): how to use the arithmetic that is free.
# - [All labs](index.md).
