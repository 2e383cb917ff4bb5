"""Sums that merge: batch with batch, machine with machine."""
