"""What do the studies of MCLLO consist of? Their simulations, designs and pictures."""
