"""The audit of a model's calibration: plan, facts, and the reports as text, HTML and JSON."""

from trueodds.reports.audit import Audit, audit

__all__ = ["Audit", "audit"]
