"""Parts that experiments of several topics are made of: models, operations and the ways to compare
them, memory of a call, and maps that are measured cell by cell. No chapter is named here.
"""
