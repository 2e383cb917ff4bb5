"""The public functions, one module each, and how their arguments are resolved."""
