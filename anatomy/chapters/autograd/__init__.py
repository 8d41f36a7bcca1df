"""The graph that autograd keeps of a layer: its nodes, what they hold and what they cost."""
