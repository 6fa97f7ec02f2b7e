"""DECIDE: sweep, boards and profiles become trials in order. Pure."""
