"""Do the page of codes and the command `explain` give the same texts, and does every code have one?

After a change of src/trueodds/core/codes.toml write the page: python -m tests.test_codes
"""

from __future__ import annotations

import re
from pathlib import Path

from trueodds.core.codes import Code, find_near_codes, load_codes, normalize_code, plain_text

PAGE = Path(__file__).parents[1] / "docs" / "codes.md"
ROW = re.compile(r"^\| (T[ON]\d{3}) \|.*$", re.MULTILINE)
HOW_TO_UPDATE = "change src/trueodds/core/codes.toml, then run python -m tests.test_codes"


def row_of_page(code: Code) -> str:
    return f"| {code.name} | {code.meaning} | {code.remedy} | {code.used_by} |"


def updated_page(page: str) -> str:
    """The page with the rows of the codes of each section; a code that is new there follows the one before it."""
    codes, parts = load_codes(), re.split(r"^(?=#+ )", page, flags=re.MULTILINE)
    for i, part in enumerate(parts):
        if match := re.match(r"### (T[ON]\d)xx", part):
            rows = [row_of_page(code) for name, code in codes.items() if name.startswith(match[1])]
            heading = part[: part.index("|---")] + part[part.index("|---") :].split("\n")[0]
            rest = ROW.sub("", part[len(heading) :]).strip("\n")
            parts[i] = "\n".join([heading, *rows, *(["", rest] if rest else []), ""]) + ("\n" if parts[i + 1 :] else "")
    return "".join(parts)


def test_the_page_of_codes_has_the_texts_that_explain_prints() -> None:
    page = PAGE.read_text(encoding="utf-8")
    listed = {match[1]: match[0] for match in ROW.finditer(page)}
    assert listed == {name: row_of_page(code) for name, code in load_codes().items()}, HOW_TO_UPDATE
    assert updated_page(page) == page


def test_a_changed_row_is_noticed_and_written_again() -> None:
    page = PAGE.read_text(encoding="utf-8")
    changed = page.replace("A probability lies outside [0, 1].", "Something else.")
    assert changed != page
    assert updated_page(changed) == page
    without_row = re.sub(r"^\| TO103 \|.*\n", "", page, flags=re.MULTILINE)
    assert updated_page(without_row) == page


def test_every_text_is_a_sentence_that_a_terminal_can_show() -> None:
    for code in load_codes().values():
        for text in (code.meaning, code.remedy):
            assert text.endswith("."), code.name
            assert "](" not in plain_text(text), code.name
            assert "|" not in text, code.name


def test_codes_are_found_as_messages_print_them() -> None:
    assert normalize_code(" [tn105]") == "TN105"
    assert find_near_codes("203") == ["TO203", "TN203"]
    assert "TO102" in find_near_codes("TO1O2")  # the letter O for the digit 0
    assert find_near_codes("?") == []


if __name__ == "__main__":
    from trueodds.core.json_files import write_text

    write_text(PAGE, updated_page(PAGE.read_text(encoding="utf-8")), "TO703")
