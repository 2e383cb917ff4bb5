"""Study of the six predictions in table 1 of Vaicenavicius et al. (2019)."""
