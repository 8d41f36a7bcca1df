"""Everything that is drawn: the only modules that know Altair, and the frame a drawing stands in.

`plain` has the charts of recorded rows and what every other chart shares with them; `svg` makes a
picture of any of them; `figures` puts it into a frame with its caption, its table and its strip.
"""
