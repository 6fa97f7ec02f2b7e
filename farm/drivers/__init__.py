"""REACH: the only code that speaks to equipment."""
