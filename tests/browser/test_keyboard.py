"""Can everything be reached, seen in focus and operated with the keyboard, and hit with a finger?"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.conftest import PHONE, WIDE
from tests.browser.pages import NAMES

# Numbers the elements that Tab must reach, and notes how each looks without the focus.
NUMBER_ELEMENTS = """() => {
  const PROPERTIES = ["outlineStyle", "outlineWidth", "outlineColor", "boxShadow", "borderColor", "borderWidth",
    "backgroundColor", "textDecorationLine", "stroke", "strokeWidth", "fill"];
  window.appearance = e => [e, ...[...e.children].slice(0, 4)].map(
    one => PROPERTIES.map(name => getComputedStyle(one)[name]).join("|")).join("\\n");
  const reachable = 'a[href], area[href], button, input, select, textarea, summary, iframe, audio, video, ' +
    '[tabindex], [contenteditable]';
  const isOneOfAGroup = e => e.type === "radio" && !e.checked && !!document.querySelector(
    `input[type=radio][name="${e.name}"]:checked`);
  window.expected = [...document.querySelectorAll(reachable)].filter(
    e => e.tabIndex >= 0 && !e.disabled && !isOneOfAGroup(e) && e.checkVisibility({visibilityProperty: true}));
  window.before = window.expected.map(window.appearance);
  window.describe = e => `<${e.localName} ${[...e.attributes].map(a => a.name + '="' + a.value.slice(0, 40) + '"')
    .join(" ")}> ${e.textContent.trim().slice(0, 40)}`;
  return window.expected.length;
}"""
# The number of the focused element, whether its focus shows, and whether a point of it is in view and not covered.
FOCUSED = """async () => {
  const e = document.activeElement;
  if (!e || e === document.body || e === document.documentElement) return null;
  const number = window.expected.indexOf(e), style = getComputedStyle(e);
  const hasOutline = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
  const shares = [0.02, 0.25, 0.5, 0.75, 0.98];
  const isUncovered = () => {
    const box = e.getBoundingClientRect(), left = Math.max(box.left, 0), right = Math.min(box.right, innerWidth);
    const top = Math.max(box.top, 0), bottom = Math.min(box.bottom, innerHeight);
    return right > left && bottom > top && shares.some(a => shares.some(b => {
      const hit = document.elementFromPoint(left + a * (right - left), top + b * (bottom - top));
      return hit && (e.contains(hit) || hit.contains(e));
    }));
  };
  for (let i = 0; i < 20 && !isUncovered(); i++) await new Promise(requestAnimationFrame);  // until it has scrolled
  return [number, hasOutline || (number >= 0 && window.appearance(e) !== window.before[number]), isUncovered(),
    window.describe(e)];
}"""


def press_until_out(page: Any, key: str, n: int) -> list[tuple[int, bool, bool, str]]:
    """Press the key until the focus leaves the page, at most some times more often than there are elements."""
    steps = []
    for _ in range(n + 50):
        page.keyboard.press(key)
        step = page.evaluate(FOCUSED)
        if step is None:
            return steps
        steps.append(tuple(step))
    raise AssertionError(f"after {n + 50} times {key} the focus is still on {steps[-1][3]}")


@pytest.mark.parametrize("name", NAMES)
def test_tab_reaches_every_control_once_and_its_focus_is_visible(open_page: Any, name: str) -> None:
    page = open_page(name)
    n = page.evaluate(NUMBER_ELEMENTS)
    steps = press_until_out(page, "Tab", n)
    reached = [number for number, *_ in steps if number >= 0]
    assert n >= 3
    assert len(set(reached)) == len(reached)
    assert page.evaluate("seen => expected.filter((e, i) => !seen.includes(i)).map(describe)", reached) == []
    assert [text for _, shows, _, text in steps if not shows] == []
    assert [text for *_, uncovered, text in steps if not uncovered] == []


@pytest.mark.parametrize("name", ["votes", "four"])
def test_shift_and_tab_go_the_same_way_back(open_page: Any, name: str) -> None:
    page = open_page(name, PHONE)
    n = page.evaluate(NUMBER_ELEMENTS)
    there = [text for *_, text in press_until_out(page, "Tab", n)]
    back = []
    for _ in there:  # at the first element it may begin anew at the last
        page.keyboard.press("Shift+Tab")
        back.append(page.evaluate(FOCUSED)[-1])
    assert back == there[::-1]


@pytest.mark.parametrize("name", ["ten", "votes", "four"])
def test_whatever_looks_clickable_is_a_control_for_the_keyboard_too(open_page: Any, name: str) -> None:
    page = open_page(name)
    assert (
        page.evaluate("""() => [...document.body.querySelectorAll("*")].filter(e =>
      getComputedStyle(e).cursor === "pointer" && e.checkVisibility()
      && !e.closest("a[href], button, input, select, summary, label, [tabindex]")).map(e => e.outerHTML.slice(0, 120))
    """)
        == []
    )


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("name", ["binary", "ten", "votes", "four"])
def test_targets_are_at_least_24_pixels_wide_and_high(open_page: Any, name: str, width: int) -> None:
    # WCAG 2.5.8, without its exception for spacing; links within a sentence are excepted, and a skip link is measured
    # where it shows, with the focus.
    page = open_page(name, width)
    small = page.evaluate("""() => {
      const targets = "a[href], button, input:not([type=hidden]), select, textarea, summary, [role=button], [role=tab]";
      const isInSentence = e => e.localName === "a" && getComputedStyle(e).display === "inline"
        && e.closest("p, li, dd") && e.parentElement.textContent.trim().length > e.textContent.trim().length;
      return [...document.querySelectorAll(targets)].filter(e => e.checkVisibility() && !isInSentence(e)).map(e => {
        let box = e.getBoundingClientRect();
        if (box.width <= 2 || box.right <= 0) { e.focus(); box = e.getBoundingClientRect(); }
        const label = e.labels && e.labels[0] ? e.labels[0].getBoundingClientRect() : box;
        const size = ["checkbox", "radio"].includes(e.type) ? label : box;
        return [Math.round(10 * size.width) / 10, Math.round(10 * size.height) / 10, e.outerHTML.slice(0, 120)];
      }).filter(([w, h]) => w < 24 || h < 24);
    }""")
    assert small == []


# The tetrahedron, which a mouse turns by dragging

TETRAHEDRON = "[data-turning='tetrahedron']"
PICTURE = f'document.querySelector("{TETRAHEDRON} svg, {TETRAHEDRON} canvas").outerHTML'


@pytest.fixture
def tetrahedron(open_page: Any) -> Any:
    """The page of four classes, where the picture turns at once."""
    return open_page("four", reduced_motion="reduce")


@pytest.mark.parametrize("key", ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"])
def test_arrow_keys_turn_the_tetrahedron_and_home_turns_it_back(tetrahedron: Any, key: str) -> None:
    control = tetrahedron.query_selector(f"{TETRAHEDRON} svg[tabindex='0'], {TETRAHEDRON} [role=application]")
    control.focus()
    initial, scrolled = tetrahedron.evaluate(PICTURE), tetrahedron.evaluate("scrollY")
    pixels = control.screenshot()
    tetrahedron.keyboard.press(key)
    assert tetrahedron.evaluate(PICTURE) != initial
    assert control.screenshot() != pixels
    assert tetrahedron.evaluate("scrollY") == scrolled
    tetrahedron.keyboard.press("Home")
    assert tetrahedron.evaluate(PICTURE) == initial


def test_every_button_of_the_tetrahedron_turns_it(tetrahedron: Any) -> None:
    buttons = tetrahedron.query_selector_all(f"{TETRAHEDRON} button")
    turning = [
        button
        for button in buttons
        if re.search("rotate|turn|tilt", f"{button.get_attribute('aria-label')} {button.inner_text()}")
    ]
    assert len(turning) >= 4
    for button in turning:
        picture = tetrahedron.evaluate(PICTURE)
        button.focus()
        tetrahedron.keyboard.press("Enter")
        assert tetrahedron.evaluate(PICTURE) != picture


def test_a_turn_is_told_to_who_cannot_see_it(tetrahedron: Any) -> None:
    tetrahedron.query_selector(f"{TETRAHEDRON} button").focus()
    tetrahedron.keyboard.press("Space")
    texts = tetrahedron.eval_on_selector_all(
        f"{TETRAHEDRON} [aria-live], {TETRAHEDRON} [role=status]", "all => all.map(e => e.textContent)"
    )
    assert re.search(r"azimuth -?\d+°", " ".join(texts))
