"""Documents that cannot rot: what they show is what the commands print, what they list is what there is."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from policies.exit_codes import ExitCode
from policies.rules.registry import rules
from policies.rules.severities import read_severities
from policies.rules.waivers import read_waivers
from scripts.cli import COMMANDS
from training.config import RunConfig
from training.exit_codes import ExitCode as TrainerExitCode
from training.mixers.registry import MIXERS
from training.optim.build import PEAKS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
RULES = ROOT / "docs" / "rules.md"
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").glob("*.md"))
ELISION = "[...]"


def blocks(text: str) -> list[list[str]]:
    """The lines of each fenced block."""
    return [found.splitlines() for found in re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


def printed(arguments: str, cwd: Path = ROOT) -> str:
    """What the shell line `arguments` of spotrail prints, at 100 columns."""
    environment = {**os.environ, "COLUMNS": "100", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    line = ["bash", "-c", f"spotrail {arguments} 2>&1"]
    return subprocess.run(line, capture_output=True, text=True, cwd=cwd, env=environment, check=False).stdout


def parts(block: list[str]) -> list[str]:
    """The stretches of a block between its elisions."""
    return [stretch.strip("\n") for stretch in "\n".join(block).split(f"\n{ELISION}\n")]


def table(text: str, heading: str) -> list[list[str]]:
    """The rows of the table that begins with the row `heading`."""
    lines = text[text.index(heading) :].splitlines()[2:]
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_readme_shows_what_the_demo_prints() -> None:
    (shown,) = (block for block in blocks(README) if block[0].startswith("spotrail plan dev"))
    recipe = re.search(r"spotrail (plan dev .*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert recipe is not None
    demo = [sys.executable, "-m", "tests.google_cloud.demo"]
    environment = {**os.environ, "COLUMNS": "100"}
    audit = subprocess.run(demo, capture_output=True, text=True, cwd=ROOT, env=environment, check=True).stdout
    real = printed(recipe[1]) + audit
    position = 0
    for stretch in parts(shown):
        found = real.find(stretch, position)
        assert found >= 0, f"not in the output of `make demo`, which is now:\n{real}"
        position = found + len(stretch)


def test_the_readme_shows_a_mistake_as_it_is_refused(tmp_path: Path) -> None:
    (shown,) = (block for block in blocks(README) if block[0].startswith("$ spotrail"))
    shutil.copytree(ROOT / "infra" / "stacks", tmp_path / "infra" / "stacks")
    for name in ("Pulumi.yaml", "infra/__main__.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    stack = tmp_path / "infra" / "stacks" / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text(encoding="utf-8").replace("zone: us-central1-b", "zone: us-central1-a"))
    assert printed(shown[0].removeprefix("$ spotrail "), tmp_path).splitlines() == shown[1:]


def test_the_exit_codes_of_the_readme_are_those_of_the_commands() -> None:
    assert table(README, "| Exit code |") == [[str(code.value), code.meaning] for code in ExitCode]


def test_every_command_is_in_the_readme() -> None:
    assert [name for name in COMMANDS if f"`spotrail {name} " not in README] == []


def test_the_page_of_rules_lists_every_rule() -> None:
    rows = [f"| {rule.id} | {rule.severity.value} | {rule.title} | [why]({rule.url}) |" for rule in rules().values()]
    listed = f"{RULES_HEAD}{chr(10).join(rows)}\n"
    if os.environ.get("UPDATE_GOLDEN"):
        RULES.write_text(listed, encoding="utf-8")
    assert RULES.read_text(encoding="utf-8") == listed, "UPDATE_GOLDEN=1 pytest tests/test_documents.py rewrites it"


RULES_HEAD = """# Rules

Each is one file of `policies/rules/`, the same in `spotrail plan`, in `spotrail check` and inside Pulumi; a rule about
the steps of a plan needs a preview file. An error must not go up: it fails `check` and `--strict`, and is mandatory in
the policy pack. A warning is money that is probably wasted. What cannot be judged yet, because a value is known only
after the apply, is said to be so and never passes silently.

To live with a finding for a while, put a waiver into the stack file; it needs a reason and an end:

```yaml
spotrail:waivers:
  - {rule: TPU-ON-DEMAND, urn: "*::eval-slice", reason: deadline run, until: 2026-12-15}
```

To give a rule another severity for good, or none:

```yaml
spotrail:severity: {DISK-NO-READER: error, DISK-THROUGHPUT-ABOVE-FLOOR: info, VM-LABELS: off}
```

| Rule | Severity | What it holds | |
|---|---|---|---|
"""


def test_the_settings_on_the_page_of_rules_are_taken() -> None:
    shown = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```$", RULES_HEAD, re.MULTILINE | re.DOTALL)]
    (waivers,), (severities,) = (each.values() for each in shown)
    assert len(read_waivers(waivers)) == 1
    assert sorted(map(str, read_severities(severities).values())) == ["None", "Severity.ERROR", "Severity.INFO"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if not target.startswith("https://")]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_a_page_name_a_heading_of_it(page: Path) -> None:
    links = re.findall(r"\]\((?!https://)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    lost = [f"{name}#{anchor}" for name, anchor in links if anchor not in anchors(page.parent / name if name else page)]
    assert lost == []


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_page_of_training_lists_what_there_is() -> None:
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    fields = [name for row in table(page, "| Part |") for name in re.findall(r"`(\w+)`", row[0])]
    run = {field.name for field in dataclasses.fields(RunConfig)}
    assert set(fields) == run - {"skips_in_a_row", "cost_per_hour"}
    assert [row[0].strip("`") for row in table(page, "| `optim.type` |")] == sorted(PEAKS, key=["kron", *PEAKS].index)
    assert {row[0].strip("`") for row in table(page, "| `mixers[].type` |")} == set(MIXERS)
    assert table(page, "| Exit code |") == [[str(code.value), code.meaning] for code in TrainerExitCode]


def test_every_make_target_in_the_readme_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"make ([\w-]+)", README)) - targets == set()


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150
