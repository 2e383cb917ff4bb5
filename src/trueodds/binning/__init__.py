"""Which rows share a bin, and how far the mean prediction of a bin is from its observed frequency."""
