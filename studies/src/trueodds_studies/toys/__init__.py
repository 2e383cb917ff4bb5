"""Data sets small enough to work by hand, each of which shows one thing that a measure does not see."""
