"""What the study of lenses is made of: the rows of six predictions, what is measured of them, tables and a picture."""
