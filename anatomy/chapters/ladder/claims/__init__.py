"""What the seed says of the ladder, by what it is put to: goals, the rungs' times, bytes moved."""
