"""Profile a small training step: a table of its operators, and a trace to open.

python trace.py        # writes trace.json: open it in ui.perfetto.dev
"""

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

on_gpu = torch.cuda.is_available()
where = "cuda" if on_gpu else "cpu"
model = nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(6))).to(where)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(64, 256, device=where)


# --8<-- [start:profile]
def step():
    optimizer.zero_grad()
    with record_function("forward"):  # names a part in the trace
        loss = model(x).square().mean()
    with record_function("backward"):
        loss.backward()
    with record_function("optimizer"):
        optimizer.step()


def save(profiler):
    profiler.export_chrome_trace("trace.json")


watched = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
# Ten steps unwatched, two to warm the profiler up, three that are kept.
plan = schedule(wait=10, warmup=2, active=3, repeat=1)
with profile(activities=watched, schedule=plan, on_trace_ready=save) as profiler:
    for _ in range(15):
        step()
        profiler.step()
by = "self_cuda_time_total" if on_gpu else "self_cpu_time_total"
print(profiler.key_averages().table(sort_by=by, row_limit=12))
# --8<-- [end:profile]
