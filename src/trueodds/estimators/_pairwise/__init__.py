"""Shared parts of estimators that sum over pairs of rows."""
