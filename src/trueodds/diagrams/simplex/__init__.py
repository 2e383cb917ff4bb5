"""Simplex diagram of three outcomes: arrows from mean prediction to outcome frequency in a triangle."""
