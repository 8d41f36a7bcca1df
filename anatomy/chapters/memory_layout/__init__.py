"""How a tensor lies in memory, and what that costs: layouts of one matrix, whether kernels can read
them as they lie, which alignment counts, and when a copy into a better layout pays.
"""
