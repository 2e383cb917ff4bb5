"""The papers' experiments and our own, each a function that returns a table; pyproject.toml has a line per study."""
