"""Reliability diagrams of several models on one pair of axes."""
