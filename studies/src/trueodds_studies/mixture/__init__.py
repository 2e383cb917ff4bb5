"""What the study of the Gaussian mixture is made of: its truth, what is measured, the rates, the tables and the pictures."""
