"""Study of how often a monitor raises a false alarm, and how late it sees a drift."""
