"""What goes wrong, said so that it can be mended: a code, the problem, what was got, the fix."""

from __future__ import annotations

from dataclasses import dataclass


class InputError(ValueError):
    """Data or settings that cannot be answered, with a stable code and the fix.

    >>> print(InputError("TO102", "Every probability must lie in [0, 1].", "-2.0 in row 17", "Pass logits=True."))
    [TO102] Every probability must lie in [0, 1]. Got -2.0 in row 17. Pass logits=True.
    """

    def __init__(self, code: str, problem: str, got: str = "", fix: str = "") -> None:
        self.code = code
        self.problem = problem
        self.got = got
        self.fix = fix
        super().__init__(code, problem, got, fix)

    def __str__(self) -> str:
        got = f" Got {self.got}." if self.got else ""
        fix = f" {self.fix}" if self.fix else ""
        return f"[{self.code}] {self.problem}{got}{fix}"


@dataclass(frozen=True, slots=True)
class Note:
    """A fact about the data or the method that is no error but belongs beside the number."""

    code: str
    text: str

    def __str__(self) -> str:
        return f"[{self.code}] {self.text}"

    def to_dict(self) -> dict[str, str]:
        """The note as JSON holds it."""
        return {"code": self.code, "text": self.text}
