"""Power and sample size by simulation from the user's own predictions."""
