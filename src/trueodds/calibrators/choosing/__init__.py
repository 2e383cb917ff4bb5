"""Who judges a fix, and on which rows?"""
