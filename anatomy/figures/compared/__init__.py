"""Two machines on a page: verdicts, ratios and limits of one beside those of the other."""
