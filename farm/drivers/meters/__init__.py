"""Meters that read electricity, one file a kind."""
