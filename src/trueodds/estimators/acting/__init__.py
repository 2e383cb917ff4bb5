"""What follows from a probability? Costs, payoffs, and judges that have not seen the row."""
