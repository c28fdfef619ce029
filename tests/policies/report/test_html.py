"""The page: whole in one file, harmless whatever the text, and sorted, searched and opened in a real browser."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import re
import select
import shutil
import subprocess
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.report.html import stack_html
from policies.report.stack import StackReport

PATIENCE = 60
"""Seconds that a browser may take for one step on a busy machine."""


class Outline(HTMLParser):
    """The tags of a page in their order with the names of their attributes, its scripts, and its visible text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self._within = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.links.extend(value or "" for name, value in attrs if name in ("src", "href", "action", "data"))
        self._within = tag

    def handle_endtag(self, tag: str) -> None:
        self._within = ""
        self.text += " "

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.scripts.append(data)
        elif self._within != "style":
            self.text += data


def data_of(report: StackReport) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Outline(stack_html(report)).scripts[0])
    return found


def test_the_answer_and_what_is_wrong_stand_in_the_page_itself(stack_report: StackReport) -> None:
    text = " ".join(Outline(stack_html(stack_report)).text.split())
    assert "dev: 162.00 → 3,568.00 USD /month, +3,406.00 (+2,102.5 %)" in text
    assert "FAIL · 2 failed, 1 warning, 2 cannot be decided, 1 waived, 2 rules passed" in text
    assert "total 3,600.00 3,667.50 violated" in text
    assert "waived: deadline run, until 2026-12-15" in text


def test_doubts_are_said(doubtful_report: StackReport) -> None:
    text = Outline(stack_html(doubtful_report)).text
    assert "UNDECIDED · 2 rules passed" in " ".join(text.split())
    assert "12 resources are not shown by the source" in text
    assert "the total is a lower bound" in text
    assert "stale or undated" in text


def test_nothing_is_loaded_from_elsewhere(stack_report: StackReport) -> None:
    page = stack_html(stack_report)
    outline = Outline(page)
    assert "https://cloud.google.com/compute/docs/disks/hyperdisks" in outline.links
    assert len(outline.links) == sum(tag == "a" for tag, _ in outline.tags)
    assert {tag for tag, _ in outline.tags} & {"link", "img", "iframe", "object", "base"} == set()
    assert "url(" not in page
    assert "@import" not in page


def test_only_our_script_and_style_may_run(stack_report: StackReport) -> None:
    page = stack_html(stack_report)
    for tag in ("style", "script"):
        text = page.rpartition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page


def test_figures_are_sorted_by_exact_amounts(stack_report: StackReport, doubtful_report: StackReport) -> None:
    rows = {row["name"]: row for row in data_of(stack_report)["rows"]}
    assert sorted(rows, key=lambda name: rows[name]["rank"]["delta"]) == ["llama", "checkpoints", "trainer"]
    # 64 of 3,504 is 1.826 %
    assert [rows[name]["share"] for name in ("trainer", "llama", "checkpoints")] == ["100.00", "1.83", "0.00"]
    (volume,) = (row for row in data_of(doubtful_report)["rows"] if row["name"] == "llama-eu")
    assert (volume["shown"]["after"], volume["rank"]["after"]) == ("?", None)


@settings(max_examples=60)
@given(text=st.text(min_size=1, max_size=60) | st.text(alphabet="<>/!-&;\"'script{}%", min_size=1, max_size=40))
def test_no_text_becomes_html(text: str, poisoned: Callable[[str], StackReport]) -> None:
    check(text, poisoned)


def test_no_hostile_text_becomes_html(hostile: str, poisoned: Callable[[str], StackReport]) -> None:
    check(hostile, poisoned)


def check(text: str, poisoned: Callable[[str], StackReport]) -> None:
    outline, tame = (Outline(stack_html(poisoned(name))) for name in (text, "tame"))
    assert outline.tags == tame.tags
    assert len(outline.scripts) == 2
    assert outline.scripts[1] == tame.scripts[1]
    assert not re.search("[<>&]", outline.scripts[0])
    assert len(json.loads(outline.scripts[0])["rows"]) == 3


@final
class Browser:
    """Headless Chromium, driven over its debugging pipe: JSON messages that end in a zero byte."""

    def __init__(self, program: str, profile: Path) -> None:
        there, self._write = os.pipe()
        self._read, back = os.pipe()
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --remote-debugging-pipe --window-size=1200,1000"
        command = f'exec "$0" {flags} --user-data-dir="$1" 3<&{there} 4>&{back}'
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, str(profile)], pass_fds=(there, back), stdout=quiet, stderr=quiet
        )
        os.close(there)
        os.close(back)
        self._number, self._rest, self._session = 0, b"", ""
        self._events: set[str] = set()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        os.write(
            self._write, json.dumps(message | ({"sessionId": self._session} if self._session else {})).encode() + b"\0"
        )
        while (answer := self._next()).get("id") != self._number:
            self._events.add(answer.get("method", ""))
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, page: Path) -> None:
        self._events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while "Page.loadEventFired" not in self._events:
            self._events.add(self._next().get("method", ""))

    def run(self, script: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def close(self) -> None:
        self.call("Browser.close")
        self._process.wait(timeout=PATIENCE)
        os.close(self._read)
        os.close(self._write)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            assert ready, "the browser says nothing"
            chunk = os.read(self._read, 65536)
            assert chunk, "the browser is gone"
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(text)
        return answer


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    found = Browser(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


NAMES = "[...document.querySelectorAll('#resources .name')].map(each => each.textContent)"

COLOURS = "['color', 'background-color'].map(each => getComputedStyle(document.body).getPropertyValue(each)).join()"


def click(key: str) -> str:
    return f"document.querySelector('#resources button[data-key={key}]').click(); {NAMES}"


def search(words: str) -> str:
    typed = f"search.value = {json.dumps(words)}; search.dispatchEvent(new Event('input'));"
    return f"{typed} [document.getElementById('shown').textContent, {NAMES}]"


def test_the_table_is_sorted_searched_and_opened(browser: Browser, stack_report: StackReport, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(stack_html(stack_report), encoding="utf-8")
    browser.open(page)
    assert browser.run(NAMES) == ["trainer", "checkpoints", "llama"]
    assert browser.run(click("delta")) == ["llama", "checkpoints", "trainer"]
    assert browser.run(click("before")) == ["llama", "checkpoints", "trainer"]
    assert browser.run(click("name")) == ["checkpoints", "llama", "trainer"]
    assert browser.run("document.querySelector('th[aria-sort]').textContent") == "Resource"
    assert browser.run(search("SPOT us-central1-b")) == ["1 of 3 resources", ["trainer"]]
    assert browser.run(search("hyperdisk nowhere")) == ["0 of 3 resources", []]
    assert browser.run(search("")) == ["3 of 3 resources", ["checkpoints", "llama", "trainer"]]
    browser.run("document.querySelectorAll('#resources .name')[2].click()")
    assert "TPU v6e chip, spot" in browser.run("document.querySelector('.parts').textContent")
    browser.run("document.querySelectorAll('#resources .name')[2].click()")
    assert browser.run("document.querySelectorAll('.parts').length") == 0
    widths = browser.run("[...document.querySelectorAll('.bar')].map(each => each.getBoundingClientRect().width)")
    assert len(widths) == 2
    assert widths[0] < widths[1] / 20


def test_the_page_follows_light_and_dark(browser: Browser, stack_report: StackReport, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(stack_html(stack_report), encoding="utf-8")
    browser.open(page)
    colours = []
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        shown = browser.run(COLOURS)
        colours.append([int(part) for part in re.findall(r"\d+", shown)])
        assert len(base64.b64decode(browser.call("Page.captureScreenshot")["data"])) > 10_000
    light, dark = colours
    assert sum(light[:3]) < sum(light[3:])
    assert sum(dark[:3]) > sum(dark[3:])


def test_hostile_names_run_nothing_in_a_browser(
    browser: Browser, hostile: str, poisoned: Callable[[str], StackReport], tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    page.write_text(stack_html(poisoned(hostile)), encoding="utf-8")
    browser.open(page)
    assert browser.run(NAMES).count("trainer") == 1
    assert browser.run("document.querySelectorAll('img, iframe, script').length") == 2
    assert browser.run("[...document.querySelectorAll('[onerror], [onclick], a[href^=javascript]')].length") == 0


def test_a_large_stack_is_drawn_in_steps(
    browser: Browser, stack_report: StackReport, stack_report_of: Callable[..., StackReport], tmp_path: Path
) -> None:
    volume = next(each.after for each in stack_report.change.resources if each.urn.endswith("llama"))
    assert volume is not None
    made = [
        dataclasses.replace(volume.resource, urn=f"{volume.resource.urn}-{number:04}", name=f"llama-{number:04}")
        for number in range(1000)
    ]
    page = tmp_path / "report.html"
    page.write_text(stack_html(stack_report_of(None, made)), encoding="utf-8")
    browser.open(page)
    assert browser.run("document.getElementById('shown').textContent") == "200 of 1000 resources"
    browser.run("document.getElementById('more').click()")
    assert len(browser.run(NAMES)) == 400
    assert browser.run(search("llama-0999")) == ["1 of 1000 resources", ["llama-0999"]]
    assert browser.run("document.getElementById('more').hidden") is True


def test_many_findings_leave_the_resources_in_sight(
    stack_report: StackReport, browser: Browser, tmp_path: Path
) -> None:
    """Of 1,234 findings 100 are shown, the gravest, and the others on a click."""
    (one, *_) = stack_report.findings
    findings = tuple(dataclasses.replace(one, message=f"finding {number}") for number in range(1234))
    page = tmp_path / "many.html"
    page.write_text(stack_html(dataclasses.replace(stack_report, findings=findings, budgets=())), encoding="utf-8")
    browser.open(page)
    assert browser.run("document.querySelectorAll('#findings tbody tr').length") == 100
    assert browser.run("document.querySelector('#rest summary').textContent") == "1,134 more findings"
    height = "document.getElementById('resources').getBoundingClientRect().top"
    closed = browser.run(height)
    browser.run("document.querySelector('#rest summary').click()")
    assert browser.run(height) > 2 * closed
    assert browser.run("document.querySelectorAll('#rest tbody tr').length") == 1134
    assert "1,234 failed" in browser.run("document.querySelector('header').textContent")
