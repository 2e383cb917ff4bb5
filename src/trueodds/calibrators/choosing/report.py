"""What did the search for a fix find? The table of candidates, the proof, and the words for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trueodds.calibrators.choose import Choice
from trueodds.calibrators.choosing.confirm import Confirmation
from trueodds.core.errors import Note
from trueodds.core.printable import printable
from trueodds.core.results import figure, strict


@dataclass(frozen=True, slots=True)
class Recalibration:
    """The whole procedure of `auto`: candidates, choice, confirmation on untouched rows, and what was applied."""

    choice: Choice | None  # None where the rows were too few to choose
    confirmation: Confirmation | None  # of the chosen one, or, if that is the identity, of its best rival
    applied: str  # the member whose map is used in the end
    summary: str  # that map in a few words
    fit_rows: int
    confirm_rows: int
    floor: float | None  # of the fits that take logs
    notes: tuple[Note, ...] = ()

    @property
    def chosen(self) -> str:
        """The member that cross-fitting chose."""
        return self.choice.rule.name if self.choice else "identity"

    @property
    def confirmed(self) -> bool:
        """Whether a fix was chosen and has proved itself."""
        return self.applied != "identity"

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """The table of candidates, one line each."""
        return [candidate.to_dict() for candidate in self.choice.candidates] if self.choice else []

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON holds it; the gain is null where no fix was chosen."""
        c = self.confirmation
        tried = c if self.chosen != "identity" else None
        used = c if self.confirmed else None
        percent = 100 * tried.gain / tried.log_loss_before if tried and tried.log_loss_before > 0 else None
        report = {
            "candidates": self.candidates,
            "chosen": self.chosen,
            "confirmed": self.confirmed,
            "applied": self.applied,
            "gain": tried.gain if tried else None,
            "gain_percent": percent,
            "gain_se": tried.se if tried else None,
            "gain_low": tried.low if tried else None,
            "pvalue": tried.pvalue if tried else None,
            "detectable_gain": c.detectable if c else None,
            "log_loss_before": c.log_loss_before if c else None,
            "log_loss_after": (used.log_loss_after if used else c.log_loss_before) if c else None,
            "accuracy_before": c.accuracy_before if c else None,
            "accuracy_after": (used.accuracy_after if used else c.accuracy_before) if c else None,
            "label_flips": used.label_flips if used else 0,
            "rows": {"fit": self.fit_rows, "confirm": self.confirm_rows},
            "mixing": c.mixing if c else None,
            "floor": self.floor,
            "summary": self.summary,
            "notes": [note.to_dict() for note in self.notes],
        }
        return {name: strict(value) for name, value in report.items()}

    def __str__(self) -> str:
        c = self.confirmation
        if c is None:
            return printable(f"no fix: {' '.join(note.text for note in self.notes)}")
        if self.confirmed:
            return f"{self.applied} ({self.summary}) confirmed: log loss {figure(c.log_loss_before)} → {figure(c.log_loss_after)}, p={figure(c.pvalue)} on {self.confirm_rows:,} untouched rows"
        return f"no fix is justified: a gain of {figure(c.detectable)} nats would have been found four times in five on {self.confirm_rows:,} untouched rows"
