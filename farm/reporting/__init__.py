"""SHOW: tables, plots and the one-file HTML report."""
