"""Recalibration by groups: columns of the rows, shrunken shifts of groups, and the test of their gain."""
