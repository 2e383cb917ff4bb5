"""Draw the reliability diagram of the README."""

import sys

import trueodds as to


def main(source: str, target: str) -> None:
    """Draw the reliability diagram of the predictions in `source`, and save it as `target`."""
    to.draw(to.read(source), "reliability", lens="confidence").save(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
