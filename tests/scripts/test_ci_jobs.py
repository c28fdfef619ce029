"""The jobs of the README and of docs/ci.md: every step of spotrail in them passes on the real stack as it stands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
RUNNER = "uv run --frozen --no-dev spotrail "
PAGES = {ROOT / "README.md": 2, ROOT / "docs" / "ci.md": 4}
"""With the number of steps that run spotrail."""
Command: TypeAlias = Callable[..., Any]


def jobs(page: Path) -> list[Any]:
    """The blocks of YAML in a page."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [yaml.safe_load(block) for block in blocks]


def texts(job: Any) -> Iterator[str]:
    """Every text in a document of YAML."""
    if isinstance(job, str):
        yield job
    inner = job.values() if isinstance(job, dict) else job if isinstance(job, list) else ()
    for value in inner:
        yield from texts(value)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_step_passes_and_leaves_what_the_next_one_takes(
    spotrail: Command, preview_text: Callable[[str], bytes], tmp_path: Path, page: Path
) -> None:
    (tmp_path / "preview.json").write_bytes(preview_text("prod"))
    said = [text for job in jobs(page) for text in texts(job)]
    steps = [text.removeprefix(RUNNER) for text in said if text.startswith(RUNNER)]
    assert len(steps) == PAGES[page] == sum("spotrail check" in text for text in said)
    for step in steps:
        ran = spotrail(*shlex.split(step), "--as-of", "2026-11-29", "-C", str(ROOT), cwd=tmp_path)
        assert (ran.returncode, ran.stderr) == (0, ""), step
        for name in re.findall(r"--output (\S+)", step):
            assert (tmp_path / name).stat().st_size > 0
            assert any(name in text and not text.startswith(RUNNER) for text in said)


def test_a_budget_that_is_broken_fails_the_step(spotrail: Command, tmp_path: Path) -> None:
    steps = [text for job in jobs(ROOT / "README.md") for text in texts(job) if text.startswith(RUNNER)]
    for step in steps:
        arguments = shlex.split(step.removeprefix(RUNNER).replace("80000", "40"))
        assert spotrail(*arguments, "--as-of", "2026-11-29", "-C", str(ROOT), cwd=tmp_path).returncode == 3
    assert len(steps) == PAGES[ROOT / "README.md"]


def test_the_readme_has_a_job_for_github_and_one_for_gitlab() -> None:
    github, gitlab = jobs(ROOT / "README.md")
    assert any(step.get("run", "").startswith(RUNNER) for step in github["jobs"]["check"]["steps"])
    assert any(step.startswith(RUNNER) for step in gitlab["cost"]["script"])


def test_what_speaks_to_the_forge_has_a_token() -> None:
    """The command of GitHub reads none by itself in a job."""
    steps = [step for job in jobs(ROOT / "docs" / "ci.md") if isinstance(job, list) for step in job]
    assert [step["env"] for step in steps if step["run"].startswith("gh ")] == [{"GH_TOKEN": "${{ github.token }}"}]
