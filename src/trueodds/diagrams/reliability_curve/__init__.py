"""The reliability curve by Gaussian kernel smoothing."""
