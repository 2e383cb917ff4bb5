"""The reliability curve, which estimates event rates by Gaussian kernel smoothing."""
