"""What the artists of a picture are called."""


def name_of(artist):
    """The name of a mark: its label, which a leading underscore keeps out of `ax.legend()`.

    What only is an entry of a legend draws nothing and has no name.
    """
    return str(artist.get_label()).removeprefix("_") if artist.get_in_layout() else ""


def legend_of(ax):
    """The legend of a picture: that of axes that were given, else that above the axes of a figure of its own."""
    return ax.get_legend() or next(iter(ax.figure.legends), None)
