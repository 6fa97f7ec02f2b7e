"""Ways to reach a board, one file a library."""
