"""What the study of confidence and correctness alone is made of: three networks, what works, what is measured."""
