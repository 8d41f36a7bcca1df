"""What is measured, and what is said of it: one folder a topic, and none imports another. A chapter
holds its experiments, what they take of a device (`requirements.py`, without torch), the columns
that they return (`columns.toml`), what follows from these on reading (`judged.py`), its claims,
what the seed says of its topic (`statements.toml`), and figures that no other topic needs. All of
these are found by their files' names. What two chapters share lies in `anatomy.parts`."""
