"""DO: runs a plan on opened drivers; names interfaces, never a driver."""
