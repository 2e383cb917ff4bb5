"""Shared parts of decision-based estimators: costs, optimal actions and out-of-sample calibrators."""
