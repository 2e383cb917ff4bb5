"""What goes wrong, said so that it can be mended: a code, the problem, what was got, the fix."""

from __future__ import annotations

from dataclasses import dataclass

from trueodds.core.printable import printable

LONGEST, LONGEST_GOT = 400, 160  # characters of a message, and of what was got in it


class InputError(ValueError):
    """Data or settings that cannot be answered, with a stable code and the fix.

    The message is one printable line of at most 400 characters: of a value that is longer the middle is left out.

    >>> print(InputError("TO102", "Every probability must lie in [0, 1].", "-2.0 in row 17", "Correct it."))
    [TO102] Every probability must lie in [0, 1]. Got -2.0 in row 17. Correct it.
    """

    def __init__(self, code: str, problem: str, got: str = "", fix: str = "") -> None:
        got = shortened(printable(" ".join(line.strip() for line in got.split("\n"))), LONGEST_GOT)
        problem, fix = printable(problem), printable(fix)
        room = LONGEST - len(_message(code, "", got, " "))
        if len(problem) + len(fix) > room:
            fix = shortened(fix, max(room - len(problem), room // 2))
            problem = shortened(problem, room - len(fix))
        self.code = code
        self.problem = problem
        self.got = got
        self.fix = fix
        super().__init__(code, problem, got, fix)

    def __str__(self) -> str:
        return _message(self.code, self.problem, self.got, self.fix)


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
        return printable(f"[{self.code}] {self.text}")

    def to_dict(self) -> dict[str, str]:
        """The note as JSON holds it."""
        return {"code": self.code, "text": self.text}


def shortened(text: str, most: int) -> str:
    """The text in at most so many characters, with an ellipsis in the place of its middle.

    >>> shortened("[0.1, 0.2, 0.3, 0.4]", 12)
    '[0.1, …0.4]'
    """
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def _message(code: str, problem: str, got: str, fix: str) -> str:
    return f"[{code}] {problem}" + (f" Got {got}." if got else "") + (f" {fix}" if fix else "")
