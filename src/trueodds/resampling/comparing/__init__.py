"""How are models compared? Each model's part, the interval of a difference, the swap of predictions, the ranking."""
