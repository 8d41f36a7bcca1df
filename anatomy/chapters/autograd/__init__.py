"""The graph that autograd records of one transformer layer: its nodes, their cost, its drawing."""
