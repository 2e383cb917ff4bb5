# The public names of trueodds.torch; __init__.py loads each on first use.
