"""How many blocks a GPU runs at once, and how many warps it takes to hide what memory takes."""
