"""What the user passes in, checked once: predictions, labels, weights, groups, clusters and votes."""
