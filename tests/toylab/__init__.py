"""A package of toy experiments: what the recorder and the commands must put up with."""
