"""What the study of binning is made of: the networks, the settings, what they give, the jumps of TACE, tables, pictures."""
