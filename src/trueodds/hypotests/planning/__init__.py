"""How many rows does it take? Power, sizes and widths, simulated from the user's own predictions."""
