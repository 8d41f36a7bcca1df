"""What follows from the rows of each topic's experiments; `anatomy.judge.rules` finds these."""
