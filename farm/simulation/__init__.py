"""Simulated boards and meters over real protocols."""
