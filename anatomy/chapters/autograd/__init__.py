"""The graph that autograd records of one transformer layer: what its nodes are, hold, launch and
cost, what a compiler makes of it, and how it is drawn.
"""
