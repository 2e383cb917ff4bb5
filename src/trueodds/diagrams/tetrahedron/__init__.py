"""Simplex diagram of four outcomes: arrows from mean prediction to outcome frequency in a tetrahedron."""
