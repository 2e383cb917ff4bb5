"""The title, author and date that a reader gives to the page of an audit, so that it can be signed."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from trueodds.core.errors import InputError
from trueodds.core.printable import to_printable


@dataclass(frozen=True, slots=True)
class Cover:
    """What the head of the page states beside the audit; all empty without a title, an author and a date."""

    title: str = ""
    author: str = ""
    date: str = ""  # in ISO format

    @classmethod
    def of(cls, title: str | None = None, author: str | None = None, date: str | datetime.date | None = None) -> Cover:
        """Check the texts and the date; with a title or an author the date is today's by default.

        >>> Cover.of("Validation", date="2026-03-01")
        Cover(title='Validation', author='', date='2026-03-01')
        """
        texts = {"title": title, "author": author}
        for name, text in texts.items():
            if text is not None and not isinstance(text, str):
                raise InputError("TO203", f"{name} must be a text.", repr(text), f'For instance ⟨{name}="…"⟩.')
        cleaned = {name: " ".join(to_printable(text or "").split()) for name, text in texts.items()}
        if date is None:
            return cls(**cleaned, date=datetime.date.today().isoformat() if any(cleaned.values()) else "")
        return cls(**cleaned, date=_parse_date(date).isoformat())

    @property
    def is_signed(self) -> bool:
        """Whether the page has lines for signatures."""
        return bool(self.title or self.author or self.date)


def _parse_date(date: str | datetime.date) -> datetime.date:
    """Return a date, or raise TO203 unless it is one or its text in ISO format."""
    if isinstance(date, datetime.datetime):
        return date.date()
    if isinstance(date, datetime.date):
        return date
    try:
        return datetime.date.fromisoformat(date)
    except (TypeError, ValueError):
        fix = "Write year, month and day: 2026-03-01."
        raise InputError("TO203", "date must be a date in ISO format.", repr(date), fix) from None
