"""The papers' experiments, each a function that returns a table."""
