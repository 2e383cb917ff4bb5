"""What the user hands in, checked once: predictions, labels, weights, groups, clusters and votes."""
