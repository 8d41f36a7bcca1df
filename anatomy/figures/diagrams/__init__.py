"""Mechanisms, drawn at build: what memory, queues and kernels do, with recorded figures beside.

A module has the diagrams of one subject. Each is drawn twice, for a desk and for a phone, on a
`canvas`, in the colours of the page's stylesheet, so that it is right in dark and in print.
"""
