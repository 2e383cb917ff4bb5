"""What are the studies of networks made of? Which nets there are, what is measured on each, tables, and pictures."""
