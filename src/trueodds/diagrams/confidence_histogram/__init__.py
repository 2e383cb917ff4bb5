"""The confidence histogram."""
