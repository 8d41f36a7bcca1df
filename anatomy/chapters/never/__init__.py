"""The list of what never to do: each entry beside what one would do instead, by its cost a use."""
