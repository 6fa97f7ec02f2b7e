"""What a driver owes: Protocols."""
