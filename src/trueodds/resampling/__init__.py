"""How sure: resampled rows, redrawn labels, and the intervals made of them."""
