"""Ways to put a board into an operating mode, one file a tool."""
