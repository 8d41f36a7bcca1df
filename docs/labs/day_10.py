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
# `loss.item()` waits until the GPU has come to the end of its queue. Is that dear? It depends on what
# the CPU would have done meanwhile. The ideas are those of [day 10](../curriculum/day_10.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# A training loop reads its loss in each step. How many times as long does it take as the loop that
# never reads it: for a small model, and for a large one?

# %%
small_guess, large_guess = None, None  # such as 2

# %% [markdown]
# ## Measure

# %%
loops = measure("sync_points.training_loop")
loops.show(op="small", quantity="step_wall", chart="ratios", caption="A small model.")

# %%
loops.show(op="large", quantity="step_wall", chart="ratios", caption="A large model.")

# %%
for guess, size in ((small_guess, "small"), (large_guess, "large")):
    ratio = loops.row(op=size, quantity="step_wall", variant="item each step")["ratio"]
    print(f"{size}:", beside(guess, ratio, "times as long"))

# %% [markdown]
# ## Explain
#
# While the CPU waits it asks for nothing, so the GPU's queue is empty when it goes on. That costs the time
# to fill it again, once in each step. Compare both models with that: is the small one host-bound, so that
# its queue was empty anyway? How long is a step of the large one?
#
# What costs nothing can still be wrong. `non_blocking=True` toward the CPU returns before the copy is
# there:

# %%
copies = measure("transfers.hazard")
copies.show()

# %% [markdown]
# <details><summary>Which of these may you use without a wait?</summary>
#
# Those that read the right values each time above, and those by luck only if you know why: PyTorch
# promises nothing for a copy to the CPU until you wait for it.
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
