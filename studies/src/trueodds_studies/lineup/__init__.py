"""What is the comparison of models made of? Who stands in line, which measures, the orders, chance, tables, and pictures."""
