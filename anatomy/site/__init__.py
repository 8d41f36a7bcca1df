"""A build of the whole site: `collecting` finds what the pages show, `building` checks each page
and runs its blocks. The hooks call it; what a page's blocks may call is `anatomy.page`.
"""
