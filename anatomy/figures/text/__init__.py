"""A page's text, without a figure's drawing: its front matter, its fenced blocks, the references
and the paragraphs bound to a verdict in its prose, and figures typed by hand.
"""
