"""Files that are nearly right: random mutations of valid ones, each made from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trueodds import InputError, Predictions

Generator = np.random.Generator

CSV = {
    "plain": b"label,p_0,p_1,w\n" + b"".join(b"%d,0.%d,0.%d,%d\n" % (i % 2, i, 10 - i, i) for i in range(1, 10)) * 3,
    "names": b"\xef\xbb\xbfnote,label,p_cat,p_dog\r\n" + b"some text,cat,0.25,0.75\r\na long note,dog,1,0\r\n" * 5,
    "quoted": b'"label",p_0,p_1,"site",note\n' + b'0,"0.5",0.5,"north","a, ""b"", c"\n1,0,1,"a\nb",\n\n' * 5,
    "literal": b"label,p_0,p_1,site\n" + b'0,0.5,0.5,5" pipe\n1,0.25,0.75,6"\n' * 6,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"weight": "w"},
    "names": {},
    "quoted": {"group": "site"},
    "literal": {"group": "site"},
}

ODDITIES: Sequence[bytes] = (
    *(
        b'"',
        b'""',
        b'"""',
        b'","',
        b'"\n',
        b'\n"',
        b",",
        b",,",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\n\r",
        b" ",
        b"\t",
        b";",
    ),
    *(
        b"\0",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xc2\xa0",
        b"\xe2\x80\xa8",
        b"\x0b",
        b"\x1c",
        b"\x85",
    ),
    *(
        b"nan",
        b"NaN",
        b"-inf",
        b"Infinity",
        b"nan(x)",
        b"1e400",
        b"-1e400",
        b"1e-400",
        b"+0.5",
        b"1_0",
        b"0x1",
        b"null",
    ),
    *(b"NA", b"true", b"0.5", b"1", b"-0", b"7", b"00", b"x", b"\xd9\xa3", b"9" * 400, b"9" * 5_000, b"x" * 140_000),
    *(b"{", b"}", b"[", b"]", b":", b"\\", b"\\u0000", b"\\ud800", b'"label": 1,', b'{"label": 1}\n', b"\\x"),
)


def mutated(content: bytes, draw: Generator, times: int | None = None) -> bytes:
    """The content with one to three changes: odd bytes inserted or written over it, a part doubled, moved, cut off."""
    for _ in range(times or int(draw.choice([1, 1, 1, 2, 3]))):
        change: Callable[[bytes, Generator], bytes] = CHANGES[draw.integers(len(CHANGES))]
        content = change(content, draw)
    return content


def _place(content: bytes, draw: Generator) -> int:
    """Anywhere, or beside something that gives the file its structure."""
    at = int(draw.integers(len(content) + 1))
    if draw.random() < 0.5:
        marks = [content.find(mark, at) for mark in (b",", b"\n", b'"')]
        positions = [mark for mark in marks if mark >= 0]
        at = min(positions, default=at) + int(draw.integers(2)) if positions else at
    return at


def _insert(content: bytes, draw: Generator) -> bytes:
    at = _place(content, draw)
    return content[:at] + ODDITIES[draw.integers(len(ODDITIES))] + content[at:]


def _overwrite(content: bytes, draw: Generator) -> bytes:
    at, odd = _place(content, draw), ODDITIES[draw.integers(len(ODDITIES))]
    return content[:at] + odd + content[at + len(odd) :]


def _replace_cell(content: bytes, draw: Generator) -> bytes:
    at = content.find(b",", int(draw.integers(len(content) + 1))) + 1
    end = min(
        (position for position in (content.find(b",", at), content.find(b"\n", at)) if position >= 0),
        default=len(content),
    )
    return content[:at] + ODDITIES[draw.integers(len(ODDITIES))] + content[end:]


def _delete(content: bytes, draw: Generator) -> bytes:
    at = _place(content, draw)
    return content[:at] + content[at + int(draw.integers(1, 1 + 2 ** draw.integers(1, 8))) :]


def _double(content: bytes, draw: Generator) -> bytes:
    at = _place(content, draw)
    part = content[at : at + int(draw.integers(1, 1 + 2 ** draw.integers(1, 8)))]
    at = _place(content, draw) if draw.random() < 0.5 else at
    return content[:at] + part + content[at:]


def flipped(content: bytes, draw: Generator) -> bytes:
    """One to four bytes changed."""
    if not content:
        return content
    changed = bytearray(content)
    for at in draw.integers(len(changed), size=draw.integers(1, 5)):
        changed[at] = draw.integers(256) if draw.random() < 0.5 else changed[at] ^ (1 << int(draw.integers(8)))
    return bytes(changed)


def _cut(content: bytes, draw: Generator) -> bytes:
    return content[: int(draw.integers(len(content) + 1))]


CHANGES = (_insert, _insert, _overwrite, _replace_cell, _replace_cell, _delete, _double, flipped, _cut)


def answer(read: Callable[[], Predictions]) -> tuple[Any, ...]:
    """What reading comes to, for comparison: every bit of the rows, or the whole of the error."""
    try:
        preds = read()
    except InputError as problem:
        return ("refused", problem.code, str(problem))
    parts = [preds.p, preds.y, preds.votes, preds.weight, *preds.group.values(), preds.cluster, preds.logits]
    bits = tuple(None if part is None else (part.dtype.str, part.shape, part.tobytes()) for part in parts)
    return ("read", preds.n, preds.classes, preds.notes, bits)
