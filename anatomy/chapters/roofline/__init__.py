"""Compute against bandwidth: a layer run five ways, the ridge found point by point, and operations
placed on measured roofs."""
