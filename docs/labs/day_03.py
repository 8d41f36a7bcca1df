# ---
# title: "Lab 3: what does a launch cost?"
# nav: "3: Launches"
# description: A notebook for day 3 - what a hundred kernels that do nothing cost your CPU and your GPU, from Python, from C++ and from a CUDA graph.
# section: Curriculum / Labs
# order: 953
# index:
#   lab: "[3: What does a launch cost?](day_03.py)"
#   you measure: "a hundred short kernels, asked for in four ways: what makes a step host-bound"
#   takes on a GPU: a minute, with compiling
# ---

# %% [markdown]
# # What does it cost to ask your GPU for a kernel?
#
# Run a hundred kernels that do next to nothing, asked for in four ways. The GPU has hardly any work, so what
# you time is the asking. The ideas are those of [day 3](../curriculum/day_03.md).

# %%
from anatomy.notebook import beside, measure

# %% [markdown]
# ## Predict
#
# How long does the CPU need to ask for one small PyTorch operation? And if a CUDA graph asks for all
# hundred at once, how many times as fast are they done?

# %%
# in seconds, such as 50e-6
launch_guess = None
graph_guess = None  # times, such as 2

# %% [markdown]
# ## Measure
#
# `PyTorch's empty kernel` is `torch.cuda._sleep(1)`: Python and the driver, without the dispatcher and
# its tensors.

# %%
ways = ["PyTorch op", "PyTorch's empty kernel"]
ways += ["C++ loop", "CUDA graph"]
launches = measure("launches.rates")
launches.show(
    op="100 launches",
    rows=ways,
    quantity="step_wall",
    chart="times",
    caption="From the first call until the GPU has done all hundred.",
)

# %%
torch_op = launches.row(quantity="step_wall", variant="PyTorch op")
ends = ("median_s", "low_s", "high_s")
asked, low, high = (torch_op[name] * 1e4 for name in ends)
print("asking for one:", beside(launch_guess, asked / 1e6, "s"))
print(f"  interval: {low:.1f} to {high:.1f} µs")
graph = launches.row(quantity="step_wall", variant="CUDA graph")
faster = 1 / graph["ratio"]
print("as a graph:", beside(graph_guess, faster, "times as fast"))
low, high = 1 / graph["ratio_high"], 1 / graph["ratio_low"]
print(f"  interval: {low:.1f} to {high:.1f} times")

# %% [markdown]
# ## Explain
#
# The CPU asks, and the GPU runs behind it. Where asking takes longer, the GPU waits between kernels; a graph
# asks for all of them in one call:

# %% tags=["drawn"]
from anatomy.page import queues

print(
    queues(
        "graph_capture.map",
        {"pointwise 65536": "twenty multiplications of 65,536 elements"},
        graph=True,
        caption="Other kernels: one by one, and as a graph. To scale.",
    )
)

# %% [markdown]
# How fast could the GPU go if the CPU were never late? Time the same hundred from a full queue:

# %%
launches.show(
    op="100 launches",
    rows=ways,
    quantity="gpu_warm",
    chart="times",
    caption="The GPU's time, all hundred queued before the first runs.",
)

# %%
torch_op = launches.row(quantity="gpu_warm", variant="PyTorch op")
runs = torch_op["median_s"] * 1e4
print(f"The CPU asks for one every {asked:.1f} µs,")
print(f"the GPU could run one every {runs:.1f} µs.")

# %% [markdown]
# If the CPU needs longer, a step of such kernels is host-bound. What helps then is fewer launches, by fusion
# or by a graph, and not a faster GPU.
#
# <details><summary>From which duration of a kernel on does the CPU no longer matter?</summary>
#
# From the time that the CPU takes to ask for one. Compare the first line above with the duration of
# your own kernels in a profile: rows of shorter ones leave gaps. In the chart's table `launch-bound` marks what
# would be host-bound without a full queue.
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
compare(
    variants,
    op="50 additions",
    quantity="step_wall",
    device=device,
    budget_s=5,
)

# %% [markdown]
# ## Where next?
#
# - [Lab 4](day_04.py): where your bytes are, and how long they take.
# - [CUDA graphs](../axioms/cuda-graphs.md): when a graph is worth its making.
# - [All labs](index.md).
