"""What is true of every image."""

from __future__ import annotations

import subprocess

import pytest

from tests.dockerfiles import INSTRUCTIONS, PROJECT, ROOT, Dockerfile, pulumi_packages, sources_of_distribution

FILES = [Dockerfile(path=path) for path in sorted(ROOT.glob("*/Dockerfile"))]
each_image = pytest.mark.parametrize("image", FILES, ids=lambda image: image.path.parent.name)


def test_there_are_images() -> None:
    assert {image.path.parent.name for image in FILES} >= {"policies", "training"}


@each_image
def test_it_knows_only_instructions_of_docker(image: Dockerfile) -> None:
    assert {word for word, _ in image.instructions} <= INSTRUCTIONS


@each_image
def test_what_is_copied_is_in_the_repository(image: Dockerfile) -> None:
    for source in image.copied:
        listed = subprocess.run(["git", "ls-files", source], cwd=ROOT, capture_output=True, text=True, check=True)
        assert listed.stdout, source


@each_image
def test_all_that_the_distribution_is_built_from_is_copied(image: Dockerfile) -> None:
    assert set(image.copied) == sources_of_distribution()


@each_image
def test_the_base_has_a_python_that_we_run_on(image: Dockerfile) -> None:
    assert {rest.split()[0] for word, rest in image.instructions if word == "FROM"} == {"python:3.11-slim"}
    assert PROJECT["project"]["requires-python"] == ">=3.11"


@each_image
def test_its_packages_are_those_of_its_role_and_never_pulumi(image: Dockerfile) -> None:
    extras = {
        word for before, word in zip(image.runs.split(), image.runs.split()[1:], strict=False) if before == "--extra"
    }
    assert extras
    assert extras <= set(PROJECT["project"]["optional-dependencies"])
    assert image.left_out == pulumi_packages()


@each_image
def test_its_programs_are_on_the_path(image: Dockerfile) -> None:
    environment = " ".join(rest for word, rest in image.stages[-1] if word == "ENV")
    assert "PATH=/opt/spotrail/bin:$PATH" in environment
