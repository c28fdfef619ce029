"""A Dockerfile read as Docker would: there is no Docker where these tests run."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
INSTRUCTIONS = frozenset({"FROM", "ENV", "WORKDIR", "RUN", "COPY", "USER", "ENTRYPOINT"})


@dataclass(frozen=True, kw_only=True)
class Dockerfile:
    """One of them."""

    path: Path

    @property
    def instructions(self) -> list[tuple[str, str]]:
        """Each instruction with its arguments; comments gone, continued lines joined."""
        lines = [line for line in self.path.read_text("utf-8").splitlines() if not line.startswith("#")]
        joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
        return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]

    @property
    def stages(self) -> list[list[tuple[str, str]]]:
        """The instructions of each stage."""
        found: list[list[tuple[str, str]]] = []
        for word, rest in self.instructions:
            if word == "FROM":
                found.append([])
            found[-1].append((word, rest))
        return found

    @property
    def copied(self) -> list[str]:
        """What is taken from the repository."""
        taken = (rest.split()[:-1] for word, rest in self.instructions if word == "COPY" and "--from" not in rest)
        return [source for each in taken for source in each]

    @property
    def runs(self) -> str:
        """All its commands."""
        return " ".join(rest for word, rest in self.instructions if word == "RUN")

    @property
    def left_out(self) -> set[str]:
        """Packages of the lock that it does not install."""
        return set(re.findall(r"--no-install-package (\S+)", self.runs))


def pulumi_packages() -> set[str]:
    """Those dependencies that only the program of a stack needs."""
    declared = {re.split(r"[^a-z0-9-]", each)[0] for each in PROJECT["project"]["dependencies"]}
    return {name for name in declared if name.startswith("pulumi")}


def sources_of_distribution() -> set[str]:
    """What the distribution is built from."""
    needed = {*PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"], PROJECT["project"]["readme"]}
    return needed | {"pyproject.toml", "uv.lock", *PROJECT["project"]["license-files"]}
