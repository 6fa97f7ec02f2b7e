"""KEEP: the database, attempt folders, traces, exports."""
