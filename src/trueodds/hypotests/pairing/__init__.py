"""What do tests by kernels share? The laws of pairs of rows, places of the simplex, and embeddings there."""
