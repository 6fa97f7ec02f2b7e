"""What things are: frozen, no I/O."""
