"""A page as text, and a build of all of them: its blocks, its references and its prose.

What the blocks may call is `anatomy.page`.
"""
