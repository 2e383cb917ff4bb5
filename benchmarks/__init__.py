"""What does trueodds cost, beside its peers, beside the machine's own limits, and as data grow?"""
