# ---
# title: "Lab 10: what does one number cost?"
# nav: "10: Sync points"
# description: A notebook for day 10 - what reading the loss in every step does to training loops whose steps are small and large, and when a copy without waiting is wrong.
# section: Curriculum / Labs
# order: 960
# index:
#   lab: "[10: What does one number cost?](day_10.py)"
#   you measure: "training loops with and without `.item()` in each step: when a wait costs nothing"
#   takes on a GPU: a minute
# ---

# %% [markdown]
# # What does it cost to read one number from the GPU?
#
# `loss.item()` waits until the GPU has come to the end of its queue. What that costs depends on how far ahead of the
# GPU the CPU was. Guess it for two loops, measure it, and find out what decides. The ideas are those of
# [day 10](../curriculum/day_10.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# A training loop reads its loss in each step. How many times as long does it take as one that never does? The model
# has two transformer layers: once small (width 256, 256 tokens), once large (width 2048, 4096 tokens).

# %%
# times as long, such as 2
small_guess, large_guess = None, None

# %% [markdown]
# ## Measure

# %%
loops = measure("sync_points.training_loop")
loops.show(
    quantity="step_wall",
    chart="ratios",
    caption="Over a loop that never reads its loss, in pieces of 25 steps. The table's times are of a piece.",
)

# %%
for guess, size in ((small_guess, "small"), (large_guess, "large")):
    read = loops.row(op=size, quantity="step_wall", variant="item each step")
    print(f"{size}:", beside(guess, read["ratio"], "times as long"))
    low, high = read["ratio_low"], read["ratio_high"]
    print(f"  {low:.2f} to {high:.2f}: {read['verdict']}")

# %% [markdown]
# ## Explain
#
# While the CPU waits it asks for nothing, so the GPU's queue is empty when it goes on. That costs the time
# to fill it again, once in each step, unless it was empty anyway:

# %% tags=["drawn"]
from anatomy.chapters.sync_points.lost_lead import lost_lead

print(
    lost_lead(
        caption="A sketch with made-up times. Above, the CPU is ahead after the first step, and the GPU always has "
        "work. Below, the wait takes that lead away in each step."
    )
)

# %% [markdown]
# Was the CPU ahead in your loops? Compare what it takes to ask for a step with the step:

# %%
loops.show(
    quantity="host_enqueue",
    rows=["one step"],
    columns=["model", "median_s"],
    caption="What the CPU takes to ask for one step.",
)

# %%
for size in ("small", "large"):
    row = loops.row(op=size, quantity="step_wall", variant="no readback")
    print(f"{size}: a step takes {row['step_s'] * 1e3:.1f} ms")

# %% [markdown]
# Asking is timed apart, each time from an empty queue. On a host whose speed changes it can come out longer than the
# whole step: read that as “the CPU was not ahead”.

# %% [markdown]
# <details><summary>Which loop can lose something?</summary>
#
# One in which the CPU needs clearly less to ask for a step than the step takes: only there is it ahead. In
# any other the GPU waits for the CPU with or without a readback, and only the price of the call itself is added.
#
# </details>
#
# ## May you leave the wait out?
#
# `non_blocking=True` toward the CPU returns before the copy is there. Below, memory that holds a −1 (`before`) is to
# receive a 1 (`copied`). `read` is what the CPU finds there at once, `later` what it finds after a wait. In the last
# two rows the copy goes to the GPU, and the CPU writes a 2 into the source while it is under way:

# %%
copies = measure("transfers.hazard")
copies.show(caption="`stale`: another value arrived than the one copied.")

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
# Your own loop: read the loss in each step, and one step late. Late is not `last.item()`: that copy would stand
# in the queue behind this step's kernels, and wait for them, too. So each step queues its copy at once, into pinned
# memory, with a mark (an event) behind it, and waits for the mark of the step before. Why that works:
# [Waits and copies](../axioms/syncs.md#can-i-read-the-loss-without-waiting).

# %% tags=["yours"]
import torch

from anatomy import compare

gpu = torch.cuda.is_available()
device = "cuda:0" if gpu else "cpu"
n = 2048 if gpu else 32
weight, data = torch.randn(2, n, n, device=device)
# on the host, in turn: where the copies of two steps arrive
arrived = [torch.empty((), pin_memory=gpu) for _ in range(2)]


def loop(read):
    seen, marks = [], []
    for step in range(10):
        loss = (data @ weight).square().mean()
        if read == "now":
            seen.append(loss.item())
        if read == "late":
            # queue a copy with a mark behind it, wait for the mark before
            arrived[step % 2].copy_(loss, non_blocking=True)
            if gpu:
                marks.append(torch.cuda.current_stream().record_event())
            if step:
                if gpu:
                    marks[step - 1].synchronize()
                seen.append(arrived[(step - 1) % 2].item())
    return loss


compare(
    {f"read {when}": lambda when=when: loop(when) for when in ("never", "now", "late")},
    op="ten steps",
    quantity="step_wall",
    device=device,
    budget_s=5,
)

# %% [markdown]
# On a CPU expect `undecided` for `read now`, and some more time for `read late`. A CPU has no queue: a call
# returns when its work is done, so `.item()` waits for nothing, and `late` only adds its copies. On a GPU `now` ends the
# CPU's lead in each step, and `late` keeps a step of it.
#
# ## Where next?
#
# - [Sync points](../benchmarks/c02_sync_points.md): which lines wait, and what to write instead.
# - [Day 10](../curriculum/day_10.md), whose ideas these are.
# - [All labs](index.md).
