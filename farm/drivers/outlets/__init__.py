"""Outlets that can be switched, one file a kind."""
