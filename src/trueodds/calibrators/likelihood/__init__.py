"""How are likelihoods of calibrators summed, penalized and climbed?"""
