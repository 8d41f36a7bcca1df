"""Parts that experiments of several topics are made of. No chapter is named here."""
