# ---
# title: "Lab 10: what does one number cost?"
# nav: "10: Sync points"
# description: A notebook for day 10 - what reading the loss in every step does to training loops whose steps are small and large, and when a copy without waiting is wrong.
# section: Curriculum / Labs
# order: 960
# index:
#   lab: "[10: What does one number cost?](day_10.py)"
#   you measure: training loops with and without `.item()` in each step
#   takes on a GPU: a minute
# ---

# %% [markdown]
# # What does it cost to read one number from the GPU?
#
# `loss.item()` waits until the GPU has come to the end of its queue. Is that dear? Only for a loop in which the CPU
# is ahead: its lead is gone in each step. The loop of a large model is
# [[sync_points.training_loop.large."item each step".ratio | speed]] here. The ideas are those of
# [day 10](../curriculum/day_10.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# A training loop of a transformer of two layers reads its loss in each step. How many times as long does it
# take as the loop that never reads it: for a small model (width 256, 256 tokens), and for a large one (width
# 2048, 4096 tokens)?

# %%
small_guess, large_guess = None, None  # such as 2

# %% [markdown]
# ## Measure

# %%
loops = measure("sync_points.training_loop")
piece = "The table has the times of pieces of 25 steps."
loops.show(op="small", quantity="step_wall", chart="ratios", caption=f"A small model. {piece}")

# %%
loops.show(op="large", quantity="step_wall", chart="ratios", caption=f"A large model. {piece}")

# %%
for guess, size in ((small_guess, "small"), (large_guess, "large")):
    ratio = loops.row(op=size, quantity="step_wall", variant="item each step")["ratio"]
    print(f"{size}:", beside(guess, ratio, "times as long"))

# %% [markdown]
# ## Explain
#
# While the CPU waits it asks for nothing, so the GPU's queue is empty when it goes on. That costs the time
# to fill it again, once in each step, unless it was empty anyway. So look at one step: how long is it, and how
# much of that does the CPU need to ask for it?

# %%
asked = {"rows": ["one step"], "columns": ["variant", "median_s"]}
loops.show(quantity="host_enqueue", **asked, caption="What the CPU takes to ask for a step.")

# %%
each = {"rows": ["no readback", "item each step"], "columns": ["variant", "step_s", "wait_s"]}
loops.show(
    quantity="step_wall",
    **each,
    caption="One step, and what the readback adds: no surer than the ratios above.",
)

# %% [markdown]
# <details><summary>Which loop can lose something?</summary>
#
# One in which the CPU needs clearly less to ask for a step than the step takes: only there is it ahead. In
# any other the GPU waits for the CPU with or without a readback, and what is added is within the noise or is the
# price of the call itself. Of loops that are ahead, the one with the least lead feels it most.
#
# </details>
#
# What costs nothing can still be wrong. `non_blocking=True` toward the CPU returns before the copy is
# there. Below, memory that holds a −1 (`before`) is to receive a 1 (`copied`). `read` is what the CPU finds there at
# once, `later` what it finds after a wait. In the last two rows the copy goes to the GPU, and the CPU writes a 2 into
# the source while it is under way:

# %%
copies = measure("transfers.hazard")
copies.show()

# %% [markdown]
# <details><summary>Which of these may you use without a wait?</summary>
#
# Those without `non_blocking`. Of the others, one that came out right above did so because CUDA takes pageable
# memory through a buffer of its own; PyTorch does not promise it, so wait before you read.
#
# </details>
#
# ## On your own
#
# Your own loop: read the loss in each step, and one step late.

# %% tags=["yours"]
import torch

from anatomy import compare

device = "cuda:0" if torch.cuda.is_available() else "cpu"
n = 2048 if device != "cpu" else 32
weight, data = torch.randn(2, n, n, device=device)


def loop(read):
    seen, last = [], None
    for _ in range(10):
        loss = (data @ weight).square().mean()
        if read == "now":
            seen.append(loss.item())
        if read == "late" and last is not None:
            seen.append(last.item())
        last = loss
    return last


compare(
    {f"read {when}": lambda when=when: loop(when) for when in ("never", "now", "late")},
    op="ten steps",
    quantity="step_wall",
    device=device,
    budget_s=5,
)

# %% [markdown]
# ## Where next?
#
# [Sync points](../benchmarks/c02_sync_points.md), or [all labs](index.md).
