"""One file a step; none is ever changed once released."""
