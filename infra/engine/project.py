"""Pulumi.yaml: where the program, its stack files and the defaults of its configuration are."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from infra.engine.errors import ProjectError
from infra.engine.stack_yaml import Yaml, load_yaml

FILES: Final = ("Pulumi.yaml", "Pulumi.yml")
RUNTIME: Final = "python"
ENTRY: Final = "__main__.py"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@final
@dataclass(frozen=True, kw_only=True)
class Project:
    """One Pulumi project, as its Pulumi.yaml describes it."""

    name: str
    """The part of every URN that names the project, and the namespace of its own settings."""
    file: Path
    """Its Pulumi.yaml."""
    folder: Path
    """Where the program runs: the folder that `main` names, else the one of Pulumi.yaml."""
    program: str
    """What is run there: `.` for the folder's `__main__.py`, else the file that `main` names."""
    stack_folder: Path
    """Where the stack files are (`stackConfigDir`)."""
    config: Mapping[str, Yaml]
    """The `config` section: defaults and types of settings, as written."""

    @property
    def root(self) -> Path:
        """The folder of Pulumi.yaml."""
        return self.file.parent

    def stacks(self) -> tuple[str, ...]:
        """The stacks that have a file."""
        files = (path for path in self.stack_folder.glob(f"Pulumi.*{self.file.suffix}") if path.is_file())
        names = (path.name.split(".", 1)[1] for path in files)
        return tuple(sorted(name.removesuffix(self.file.suffix) for name in names))

    def stack_file(self, stack: str) -> Path:
        """The file of `stack`. Raises ProjectError that lists the stacks there are."""
        path = self.stack_folder / f"Pulumi.{stack}{self.file.suffix}"
        if _NAME.fullmatch(stack) and path.is_file():
            return path
        if _NAME.fullmatch(stack) and os.path.lexists(path):
            raise ProjectError(f"{path}: is not a file that can be read")
        known = self.stacks()
        there = f"The stacks are: {', '.join(known)}." if known else f"No stack has a file in {self.stack_folder}."
        raise ProjectError(f'no stack "{stack}": there is no {path}\n  {there}{_meant(stack, known)}')


def find_project(start: Path) -> Path:
    """The folder of the Pulumi.yaml in `start` or in the nearest folder above. Raises ProjectError where none is."""
    here = start.resolve()
    for folder in (here, *here.parents):
        if any((folder / name).is_file() for name in FILES):
            return folder
    raise ProjectError(f"no Pulumi.yaml in {here} or in a folder above; run this in a Pulumi project")


def load_project(folder: Path) -> Project:
    """Read the Pulumi.yaml in `folder`. Raises ProjectError."""
    file = next((folder.resolve() / name for name in FILES if (folder / name).is_file()), None)
    if file is None:
        raise ProjectError(f"no Pulumi.yaml in {folder}; run this in a Pulumi project")
    document = load_yaml(file)
    if not isinstance(document, dict):
        raise ProjectError(f"{file}: must be a mapping with name and runtime")
    _check_runtime(file, document)
    main_folder, program = _main(file, document.get("main"))
    config, stack_folder = document.get("config"), document.get("stackConfigDir")
    if isinstance(config, str):  # before Pulumi 3.44, `config` was what `stackConfigDir` is now
        config, stack_folder = None, config
    if config is not None and not isinstance(config, dict):
        raise ProjectError(f"{file}: config is {config!r}; it must be a mapping")
    return Project(
        name=_name(file, document),
        file=file,
        folder=main_folder,
        program=program,
        stack_folder=file.parent / _text(file, "stackConfigDir", stack_folder, ""),
        config=config or {},
    )


def _name(file: Path, document: Mapping[str, Yaml]) -> str:
    if "name" not in document:
        raise ProjectError(f"{file}: name is not set{_instead(document, 'name')}")
    name = _text(file, "name", document["name"], "")
    if not _NAME.fullmatch(name):
        raise ProjectError(f'{file}: name is "{name}"; it must be 1 to 100 letters, digits, "-", "_" or "."')
    return name


def _check_runtime(file: Path, document: Mapping[str, Yaml]) -> None:
    runtime = document.get("runtime")
    name = runtime.get("name") if isinstance(runtime, dict) else runtime
    if name is None:
        held = _instead(runtime, "name") if isinstance(runtime, dict) else _instead(document, "runtime")
        raise ProjectError(f"{file}: runtime is not set{held}; the offline preview runs runtime: {RUNTIME}")
    if name != RUNTIME:
        raise ProjectError(f'{file}: runtime is "{name}"; the offline preview runs {RUNTIME} programs only')


def _main(file: Path, main: Yaml) -> tuple[Path, str]:
    where = (file.parent / _text(file, "main", main, ".")).resolve()
    if not where.is_relative_to(file.parent.resolve()):
        raise ProjectError(f'{file}: main is "{main}"; it must be inside the project')
    if where.is_file():
        return where.parent, where.name
    if not (where / ENTRY).is_file():
        raise ProjectError(f"{file}: there is no program: {where / ENTRY} does not exist; main names its folder")
    return where, "."


def _text(file: Path, key: str, value: Yaml, default: str) -> str:
    if value is None:
        return default
    if not isinstance(value, str):
        raise ProjectError(f"{file}: {key} is {value!r}; it must be text")
    return value


def _instead(document: Mapping[str, Yaml], key: str) -> str:
    """The key that stands where `key` was meant."""
    close = difflib.get_close_matches(key, document, n=1)
    return f' (it has "{close[0]}")' if close else ""


def _meant(value: str, choices: Iterable[str]) -> str:
    close = difflib.get_close_matches(value, list(choices), n=1)
    return f" Did you mean {close[0]}?" if close else ""
