"""What does a likelihood leave open about a probability?"""
