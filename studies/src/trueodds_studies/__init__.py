"""Simulation studies and repeated published experiments that check trueodds where the correct answer is known."""
