"""What a board says of itself while it works, one file a source."""
