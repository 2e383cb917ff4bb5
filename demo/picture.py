"""What does the reliability diagram of the digits look like? Draws the README's picture through the public names."""

import sys

import trueodds as to


def main(source: str, target: str) -> None:
    """Draw the diagram of the predictions in `source` into `target`."""
    to.draw(to.read(source), "reliability", lens="confidence").save(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
