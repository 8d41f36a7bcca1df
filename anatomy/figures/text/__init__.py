"""A page's text, without a figure's drawing: its front matter, its fenced blocks, the references
and the paragraphs bound to a verdict in its prose, and what it says without a recording.

`offset` counts the lines of front matter above a text without it. What is wrong is a sentence that
begins with `page.md:line`.
"""
