"""What did the search for a fix find? The table of candidates, the proof, and the words for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from trueodds.calibrators.choose import Choice
from trueodds.calibrators.choosing.confirm import NO_GAIN, NOT_ENOUGH_ROWS, Confirmation
from trueodds.core.errors import Note
from trueodds.core.printable import printable
from trueodds.core.results import figure, strict


@dataclass(frozen=True, slots=True)
class Recalibration:
    """The whole procedure of `auto`: candidates, choice, confirmation on rows that none of these had seen, and what was applied."""

    choice: Choice | None  # None where the rows were too few to choose
    confirmation: Confirmation | None  # of the whole procedure
    applied: str  # the member whose map is used in the end
    summary: str  # that map in a few words
    fit_rows: int
    confirm_rows: int  # on which the candidates were compared and the gain was confirmed, each by fits without it
    min_prob: float | None  # of the fits that take logs
    notes: tuple[Note, ...] = ()

    @property
    def chosen(self) -> str:
        """The member that cross-fitting chose."""
        return self.choice.spec.name if self.choice else "identity"

    @property
    def confirmed(self) -> bool:
        """Whether a fix was chosen and has proved itself."""
        return self.applied != "identity"

    @property
    def outcome(self) -> str | None:
        """`confirmed`, `too few rows` or `no gain`; None where no fix was looked for."""
        if self.confirmation is None:
            return None
        return NO_GAIN if self.chosen == "identity" else self.confirmation.outcome

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """The table of candidates, one line each."""
        return [candidate.to_dict() for candidate in self.choice.candidates] if self.choice else []

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON holds it; the gain is null where no fix was chosen."""
        c = self.confirmation
        tried = c if self.chosen != "identity" else None
        used = c if self.confirmed else None
        part = 100 / c.log_loss_before if c and 0 < c.log_loss_before < math.inf else None
        report = {
            "candidates": self.candidates,
            "chosen": self.chosen,
            "confirmed": self.confirmed,
            "outcome": self.outcome,
            "applied": self.applied,
            "gain": tried.gain if tried else None,
            "gain_percent": part * (tried.log_loss_before - tried.log_loss_after) if tried and part else None,
            "gain_low_percent": part * tried.low if tried and part else None,
            "gain_se": tried.se if tried else None,
            "gain_low": tried.low if tried else None,
            "gain_high": tried.high if tried else None,
            "pvalue": tried.pvalue if tried else None,
            "required_rows": rounded(c.required_rows) if c and self.outcome == NOT_ENOUGH_ROWS else None,
            "detectable_gain": c.detectable if c else None,
            "log_loss_before": c.log_loss_before if c else None,
            "log_loss_after": (used.log_loss_after if used else c.log_loss_before) if c else None,
            "accuracy_before": c.accuracy_before if c else None,
            "accuracy_after": (used.accuracy_after if used else c.accuracy_before) if c else None,
            "label_flips": used.label_flips if used else 0,
            "rows": {"fit": self.fit_rows, "confirm": self.confirm_rows},
            "mixing": c.mixing if c else None,
            "min_prob": self.min_prob,
            "summary": self.summary,
            "notes": [note.to_dict() for note in self.notes],
        }
        return {name: strict(value) for name, value in report.items()}

    def __str__(self) -> str:
        c = self.confirmation
        if c is None:
            return printable(f"no fix: {' '.join(note.text for note in self.notes)}")
        if self.confirmed:
            return f"{self.applied} ({self.summary}) confirmed: log loss {figure(c.log_loss_before)} → {figure(c.log_loss_after)}, p={figure(c.pvalue)}, cross-fitted on {self.confirm_rows:,} rows"
        if self.outcome == NOT_ENOUGH_ROWS:
            return f"{self.chosen} not confirmed: too few rows; about {rounded(c.required_rows):,} would confirm such a gain"
        return f"no gain to be had: one of {figure(c.detectable)} nats would have been confirmed four times in five on {self.confirm_rows:,} rows"


def rounded(rows: float) -> int:
    """A number of rows to two digits, which is all that is known of it.

    >>> rounded(1234.5), rounded(96.1)
    (1200, 96)
    """
    return int(float(f"{rows:.2g}"))
