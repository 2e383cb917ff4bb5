"""What goes wrong, said so that it can be mended: a code, the problem, what was got, the fix."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 300  # characters of what was got that are shown


class InputError(ValueError):
    """Data or settings that cannot be answered, with a stable code and the fix.

    >>> print(InputError("TO102", "Every probability must lie in [0, 1].", "-2.0 in row 17", "Correct it."))
    [TO102] Every probability must lie in [0, 1]. Got -2.0 in row 17. Correct it.
    """

    def __init__(self, code: str, problem: str, got: str = "", fix: str = "") -> None:
        got = " ".join(got.split()) if "\n" in got else got
        got = got if len(got) <= LONGEST else f"{got[:LONGEST]} …"
        self.code = code
        self.problem = problem
        self.got = got
        self.fix = fix
        super().__init__(code, problem, got, fix)

    def __str__(self) -> str:
        got = f" Got {self.got}." if self.got else ""
        fix = f" {self.fix}" if self.fix else ""
        return f"[{self.code}] {self.problem}{got}{fix}"


def describe(value: object) -> str:
    """A value in a few words: as it is written where that is short, else its type and size.

    >>> describe("eec"), describe([0.5] * 300)
    ("'eec'", 'list of 300')
    """
    kind = type(value).__name__
    if (shape := getattr(value, "shape", ())) and isinstance(shape, tuple):
        return f"{kind} of shape {shape}"
    if isinstance(value, (list, tuple, dict, set)) and len(value) > 8:
        return f"{kind} of {len(value):,}"
    text = repr(value)
    return text if len(text) <= 80 and "\n" not in text else kind


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
