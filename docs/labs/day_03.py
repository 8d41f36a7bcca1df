# ---
# title: "Lab 3: what does a launch cost?"
# nav: "3: Launches"
# description: A notebook for day 3 - what a hundred kernels that do nothing cost your CPU and your GPU, from Python, from C++ and from a CUDA graph.
# section: Curriculum / Labs
# order: 953
# index:
#   lab: "[3: What does a launch cost?](day_03.py)"
#   you measure: a hundred short kernels, asked for in four ways
#   takes on a GPU: a minute, with compiling
# ---

# %% [markdown]
# # What does it cost to ask your GPU for a kernel?
#
# A hundred kernels that do next to nothing, asked for in four ways. The GPU has no work, so what
# you time is the asking. The ideas are those of [day 3](../curriculum/day_03.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# How long does the CPU need to ask for one small PyTorch operation? And if a CUDA graph asks for all
# hundred at once, how many times as fast is the whole?

# %%
launch_guess = None  # seconds, such as 50e-6
graph_guess = None  # such as 2

# %% [markdown]
# ## Measure

# %% [markdown]
# `PyTorch's empty kernel` is `torch.cuda._sleep(1)`: Python and the driver, without the dispatcher and
# its tensors.

# %%
ways = ["PyTorch op", "PyTorch's empty kernel", "C++ loop", "CUDA graph"]
launches = measure("launches.rates")
launches.show(
    op="100 launches",
    rows=ways,
    quantity="host_enqueue",
    chart="times",
    caption="How long the CPU is busy asking for a hundred kernels.",
)

# %%
torch_op = launches.row(quantity="host_enqueue", variant="PyTorch op")
asked = torch_op["median_s"] / 100
print(beside(launch_guess, asked, "s"))
graph = launches.row(quantity="step_wall", variant="CUDA graph")
print(beside(graph_guess, 1 / graph["ratio"], "times as fast from a graph"))
low, high = 1 / graph["ratio_high"], 1 / graph["ratio_low"]
print(f"By its interval: {low:.1f} to {high:.1f} times.")

# %% [markdown]
# ## Explain
#
# The same hundred, timed on the GPU while its queue is full:

# %%
launches.show(
    op="100 launches",
    rows=ways,
    quantity="gpu_warm",
    chart="times",
    caption="How long the GPU needs for them once they are queued.",
)

# %%
op = launches.row(op="100 launches", quantity="gpu_warm", variant="PyTorch op")
busy = op["median_s"] / 100
print(f"One operation keeps the CPU for {asked * 1e6:.1f} µs")
print(f"and the GPU for {busy * 1e6:.1f} µs.")

# %% [markdown]
# If the CPU needs longer than the GPU, a step of such kernels is host-bound. What helps then is fewer
# launches, by fusion or by a graph, and not a faster GPU.
#
# <details><summary>From which duration of a kernel on does the CPU no longer matter?</summary>
#
# From the time that the CPU takes to ask for one. Compare the first line above with the duration of
# your own kernels in a profile: shorter ones leave gaps.
#
# </details>
#
# ## On your own
#
# Your own model's step, eager and as one graph. Here is a chain of small additions; put your code in
# its place.

# %% tags=["yours"]
import torch

from anatomy import compare

device = "cuda:0" if torch.cuda.is_available() else "cpu"
x = torch.randn(256, device=device)


def chain():
    y = x
    for _ in range(50):
        y = y + 1
    return y


variants = {"eager": chain}
if device != "cpu":
    graph = torch.cuda.CUDAGraph()
    chain()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        result = chain()
    variants["graph"] = lambda: (graph.replay(), result)[1]
compare(variants, op="50 additions", quantity="step_wall", device=device, budget_s=5)

# %% [markdown]
# ## Where next?
#
# [Lab 4](day_04.py): where your bytes are, and how long they take. Or choose among [all labs](index.md).
