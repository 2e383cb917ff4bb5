"""What do tests over groups of equal size share? The groups, and the quadratic form of their residuals."""
