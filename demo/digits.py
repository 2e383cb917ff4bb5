"""Train a random forest on handwritten digits, and write its predictions for held-out digits to a Parquet file."""

import sys

import numpy as np
import pyarrow
import pyarrow.parquet
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split


def main(path: str) -> None:
    """Train on half of the digits, and write the predictions for the other half."""
    pixels, digit = load_digits(return_X_y=True)
    train_pixels, held_out, train_digit, held_out_digit = train_test_split(
        pixels, digit, test_size=0.5, stratify=digit, random_state=0
    )
    forest = RandomForestClassifier(random_state=0).fit(train_pixels, train_digit)
    predicted = forest.predict_proba(held_out)
    columns = {f"p_{k}": predicted[:, k] for k in range(10)} | {"label": held_out_digit}
    intensity = held_out.sum(axis=1)
    columns["ink"] = np.array(["light", "medium", "heavy"])[
        np.searchsorted(np.quantile(intensity, [1 / 3, 2 / 3]), intensity)
    ]
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    right = (predicted.argmax(axis=1) == held_out_digit).mean()
    print(f"{len(predicted)} held-out digits, {right:.1%} recognized: {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "demo/digits.parquet")
