"""Pulumi.yaml and the places it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.engine.errors import ProjectError
from infra.engine.project import load_project


def lay(folder: Path, text: str, *files: str) -> Path:
    """A folder with that Pulumi.yaml, a program, and empty `files`."""
    for name in ("__main__.py", "infra/__main__.py", *files):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "Pulumi.yaml").write_text(text)
    return folder


def test_a_project_with_everything(tmp_path: Path) -> None:
    text = (
        "name: spotrail\nruntime: {name: python, options: {toolchain: uv}}\nmain: infra/\n"
        "stackConfigDir: infra/stacks\nconfig: {spotrail:size: 3}\n"
    )
    stacks = ("infra/stacks/Pulumi.dev.yaml", "infra/stacks/Pulumi.prod.eu.yaml", "infra/stacks/notes.yaml")
    project = load_project(lay(tmp_path, text, *stacks))
    assert (project.name, project.program) == ("spotrail", ".")
    assert (project.root, project.folder) == (tmp_path, tmp_path / "infra")
    assert project.config == {"spotrail:size": 3}
    assert project.stacks() == ("dev", "prod.eu")
    assert project.stack_file("prod.eu") == tmp_path / "infra/stacks/Pulumi.prod.eu.yaml"


def test_the_least_project(tmp_path: Path) -> None:
    project = load_project(lay(tmp_path, "name: small\nruntime: python\n", "Pulumi.dev.yaml"))
    assert (project.folder, project.program, project.config) == (tmp_path, ".", {})
    assert project.stacks() == ("dev",)


def test_main_names_a_file(tmp_path: Path) -> None:
    project = load_project(lay(tmp_path, "name: a\nruntime: python\nmain: infra/__main__.py\n"))
    assert (project.folder, project.program) == (tmp_path / "infra", "__main__.py")


def test_config_once_named_the_folder_of_stacks(tmp_path: Path) -> None:
    project = load_project(lay(tmp_path, "name: a\nruntime: python\nconfig: stacks\n", "stacks/Pulumi.dev.yaml"))
    assert (project.stacks(), project.config) == (("dev",), {})


def test_the_short_suffix(tmp_path: Path) -> None:
    lay(tmp_path, "name: a\nruntime: python\n", "Pulumi.dev.yml")
    (tmp_path / "Pulumi.yaml").rename(tmp_path / "Pulumi.yml")
    assert load_project(tmp_path).stacks() == ("dev",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[name]", r"Pulumi\.yaml: must be a mapping with name and runtime"),
        ("nmae: a\nruntime: python", r"Pulumi\.yaml: name is not set \(it has \"nmae\"\)"),
        ("name: a b\nruntime: python", r'Pulumi\.yaml: name is "a b"; it must be 1 to 100 letters'),
        ("name: 3\nruntime: python", r"Pulumi\.yaml: name is 3; it must be text"),
        ("name: a", r"Pulumi\.yaml: runtime is not set; the offline preview runs runtime: python"),
        ("name: a\nruntme: python", r'runtime is not set \(it has "runtme"\)'),
        ("name: a\nruntime: {nme: python}", r'runtime is not set \(it has "nme"\)'),
        ("name: a\nruntime: nodejs", r'Pulumi\.yaml: runtime is "nodejs"; the offline preview runs python programs'),
        ("name: a\nruntime: {name: go}", r'Pulumi\.yaml: runtime is "go"'),
        ("name: a\nruntime: python\nmain: ../x", r'main is "\.\./x"; it must be inside the project'),
        ("name: a\nruntime: python\nmain: docs", r"there is no program: .*docs/__main__\.py does not exist"),
        ("name: a\nruntime: python\nconfig: [1]", r"Pulumi\.yaml: config is \[1\]; it must be a mapping"),
        ("name: a\nruntime: python\nstackConfigDir: 1", r"stackConfigDir is 1; it must be text"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProjectError, match=message):
        load_project(lay(tmp_path, text))


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        ("stagin", r'no stack "stagin": there is no .*\n  The stacks are: dev, staging\. Did you mean staging\?$'),
        ("else", r"The stacks are: dev, staging\.$"),
        ("../dev", r'no stack "\.\./dev"'),
        ("", r'no stack ""'),
    ],
)
def test_a_stack_that_is_not_there(tmp_path: Path, stack: str, message: str) -> None:
    project = load_project(lay(tmp_path, "name: a\nruntime: python\n", "Pulumi.dev.yaml", "Pulumi.staging.yaml"))
    with pytest.raises(ProjectError, match=message):
        project.stack_file(stack)


def test_a_stack_whose_file_is_none(tmp_path: Path) -> None:
    project = load_project(lay(tmp_path, "name: a\nruntime: python\n", "Pulumi.dev.yaml"))
    (tmp_path / "Pulumi.folder.yaml").mkdir()
    (tmp_path / "Pulumi.loop.yaml").symlink_to(tmp_path / "Pulumi.loop.yaml")
    for stack in ("folder", "loop"):
        with pytest.raises(ProjectError, match=rf"Pulumi\.{stack}\.yaml: is not a file that can be read"):
            project.stack_file(stack)
    assert project.stacks() == ("dev",)


def test_a_project_without_stacks(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"No stack has a file in "):
        load_project(lay(tmp_path, "name: a\nruntime: python\n")).stack_file("dev")
