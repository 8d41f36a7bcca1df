"""What a page shows by calling it: a figure of one kind each, made from recordings.

Pages call them by way of `anatomy.page`. What is computed for a figure lies beside it: where a
technique pays, what nothing beats, the knee of a curve. `charts` draws, and `text` reads prose.
"""
