"""Ways to send a message to people."""
