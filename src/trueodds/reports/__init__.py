"""The whole answer for a person: as text, as a page, as JSON."""

from trueodds.reports.plan import Audit, audit

__all__ = ["Audit", "audit"]
