"""Everything that is drawn: the only modules that know Altair, and the frame a drawing stands in.

`grammar` is what all charts are made of, `plain` has those of recorded rows; `svg` makes a picture
of any of them; `figures` puts it into a frame with its caption, its table and its strip.
"""
