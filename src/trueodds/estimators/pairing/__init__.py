"""How are rows compared with one another? Sums over pairs, of rows and of bins, without the pairs of a row with itself."""
