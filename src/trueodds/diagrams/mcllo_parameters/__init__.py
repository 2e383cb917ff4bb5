"""Shift and slope of each class in multicategory linear log odds (MCLLO) recalibration."""
