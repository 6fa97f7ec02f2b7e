"""READ: files become models; errors name file, line and column."""
