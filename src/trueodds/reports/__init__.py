"""The audit of a model's calibration: its estimates and tests, and the report as text, HTML and JSON."""

from trueodds.reports.audit import Audit, audit

__all__ = ["Audit", "audit"]
