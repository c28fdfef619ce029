"""The three stacks as they lie in the repository: right, different where they should be, and readable by Pulumi."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.engine.configuration import load_configuration
from infra.engine.project import load_project
from infra.engine.stack_yaml import load_yaml
from infra.plan.capacity import Capacity
from infra.plan.quotas import quota_needs
from infra.preview import Preview, preview
from infra.settings import Settings
from infra.settings.config import parse
from infra.settings.model import HeadSettings, ServingSettings, SliceSettings
from infra.settings.oversight import GuardSettings
from policies.audit.schedule import read_schedule
from policies.hardware.disks import floor_throughput
from policies.hardware.slices import shape
from policies.resources import STACK_TYPE

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "infra/stacks"
STACKS = ("dev", "staging", "prod")


def stack(env: str) -> Settings:
    """The settings of a stack, from the text that Pulumi would hand to its program."""
    given = load_configuration(load_project(ROOT), env)
    found, warnings = parse(given.of("spotrail"), env=env, project=given.values["gcp:project"])
    assert warnings == ()
    return found


def hours(ttl: str) -> int:
    return int(ttl[:-1]) * (24 if ttl.endswith("d") else 1)


def test_there_are_three() -> None:
    assert sorted(file.name for file in FOLDER.iterdir()) == sorted(f"Pulumi.{env}.yaml" for env in STACKS)


@pytest.mark.parametrize("env", STACKS)
def test_a_stack_is_right_and_lives_where_everything_has_a_price(env: str) -> None:
    found = stack(env)
    assert {found.zone, found.head.zone, *found.serving.zones, *(one.zone for one in found.slices)} == {"us-central1-b"}
    assert {one.capacity for one in (*found.slices, found.serving)} == {Capacity.SPOT}
    assert found.network.nat is False
    assert found.alerts.emails
    assert found.extra_zones == ()


def test_they_are_what_the_readme_says() -> None:
    dev, staging, prod = map(stack, STACKS)
    assert [(one.name, one.shape, one.count, one.mount_model) for one in dev.slices] == [("trainer", "v6e-8", 1, True)]
    assert [(one.shape, one.mount_model) for one in staging.slices] == [("v6e-16", True)]
    assert shape(staging.slices[0].shape).multi_host
    assert [(one.name, one.shape, one.count) for one in prod.slices] == [("trainer", "v6e-64", 2)]
    assert (prod.serving.shape, prod.serving.hosts) == ("v6e-8", 4)
    assert dev.serving.hosts == staging.serving.hosts == 0
    assert (dev.head.machine, dev.model.size_gib) == ("e2-standard-4", 200)


def test_they_differ_as_real_ones_do() -> None:
    dev, staging, prod = map(stack, STACKS)
    assert hours(dev.ttl) < hours(staging.ttl) < hours(prod.ttl)
    assert dev.budget.monthly < staging.budget.monthly < prod.budget.monthly
    assert dev.slices[0].max_run_hours < staging.slices[0].max_run_hours < prod.slices[0].max_run_hours
    assert len({one.project for one in (dev, staging, prod)}) == 3
    assert len({one.model.manifest_sha256 for one in (dev, staging, prod)}) == 3
    assert (dev.ci, bool(staging.ci), bool(prod.ci)) == (None, True, True)


def cold_start(gib: int, rate: Fraction | int) -> int:
    """Minutes that one reader needs for all of a volume."""
    return round(Fraction(gib * 1024) / rate / 60)


def test_the_comments_on_throughput_are_true() -> None:
    dev, staging, prod = (stack(env).model for env in STACKS)
    text = {env: (FOLDER / f"Pulumi.{env}.yaml").read_text("utf-8") for env in STACKS}
    assert "Three times the least" in text["dev"]
    assert dev.throughput == 3 * floor_throughput(dev.size_gib)
    slow, fast = cold_start(200, floor_throughput(200)), cold_start(200, dev.throughput)
    assert f"takes {fast} minutes instead of {slow}" in text["dev"]
    assert "The least of a volume of this size" in text["staging"]
    assert staging.throughput == floor_throughput(staging.size_gib)
    share = Fraction(prod.throughput, 4)
    assert f"Four hosts that start together share it: {share} MiB/s each" in text["prod"]
    assert f"{cold_start(prod.size_gib, share)} minutes for all of it" in text["prod"]


@pytest.mark.parametrize("env", STACKS)
def test_a_stack_file_is_plain_yaml_without_secrets(env: str) -> None:
    file = FOLDER / f"Pulumi.{env}.yaml"
    found: Any = yaml.safe_load(file.read_text("utf-8"))
    assert list(found) == ["config"]
    assert found == load_yaml(file), "YAML 1.1 and 1.2 read it alike"
    assert {key.split(":")[0] for key in found["config"]} == {"gcp", "spotrail"}
    assert "secure" not in file.read_text("utf-8")


def test_the_project_file_has_what_pulumi_knows() -> None:
    found: Any = yaml.safe_load((ROOT / "Pulumi.yaml").read_text("utf-8"))
    assert set(found) == {"name", "description", "main", "stackConfigDir", "runtime"}
    assert found["name"] == "spotrail"
    assert (ROOT / found["main"] / "__main__.py").is_file()
    assert (ROOT / found["stackConfigDir"]).samefile(FOLDER)
    # Pulumi would find uv.lock, and take what `uv sync` does not want out of the environment before each run.
    assert found["runtime"] == {"name": "python", "options": {"toolchain": "pip", "virtualenv": ".venv"}}


@cache
def dev() -> Preview:
    return preview("dev", ROOT)


class TestFirstDay:
    """docs/first-day.md, held against the program that it is about."""

    TEXT = (ROOT / "docs/first-day.md").read_text("utf-8")

    def test_the_ground_floor_stands_by_itself(self) -> None:
        """Pulumi refuses a target whose dependency is neither there nor a target."""
        resources = dev().resources
        patterns = re.findall(r"--target '\*\*([^*']+)\*\*'", self.TEXT)
        assert len(patterns) == 5
        chosen = {
            one.urn: one for one in resources if one.type == STACK_TYPE or any(part in one.urn for part in patterns)
        }
        assert {one.name for one in chosen.values()} >= {"models", "checkpoints", "images", "worker", "compute"}
        for one in chosen.values():
            provider = one.options.provider.rpartition("::")[0]
            needed = {*one.options.dependencies, one.options.parent or one.urn, provider or one.urn}
            assert needed <= set(chosen), one.urn

    def test_names_are_those_of_the_stack(self) -> None:
        resources = dev().resources
        (job,) = re.findall(r'resource\.labels\.job_name="([^"]+)"', self.TEXT)
        names = {str(one.value("name") or one.value("repositoryId")) for one in resources}
        assert names >= {job, *(f"acme-tpu-dev-dev-{bucket}" for bucket in ("checkpoints", "datasets", "models"))}
        assert "dev-images" in {one.value("repositoryId") for one in resources}
        assert "tunnel_command" in dev().outputs

    def test_the_table_of_quotas_is_what_the_plan_says(self) -> None:
        rows = re.findall(
            r"^\| `([A-Za-z0-9-]+)`.* \| ([0-9,]+).* \| ([0-9]+|not published).*\|$", self.TEXT, re.MULTILINE
        )
        assert len(rows) == 6
        said = {
            metric: (int(needed.replace(",", "")), None if has[0] == "n" else int(has)) for metric, needed, has in rows
        }
        needs = {need.note.split(";")[0]: (need.needed, need.default) for need in quota_needs(dev().resources)}
        assert said == {metric: needs[metric] for metric in said}

    def test_the_settings_of_the_guard_are_those_that_there_are(self) -> None:
        (part,) = re.findall(r"^The guard runs .*?^$", self.TEXT, re.MULTILINE | re.DOTALL)
        defaults = GuardSettings()
        alerts = {"idle_percent", "idle_hours"}
        assert set(re.findall(r"`([a-z_]+)`", part)) - {"ttl"} == set(vars(defaults)) - alerts
        said = dict(re.findall(r"`([a-z_]+)` \((true|false|\d+)", part))
        assert said == {key: str(getattr(defaults, key)).lower() for key in said}
        assert set(said) == {"enabled", "apply", "every_hours", "window_days", "idle_dollars"}
        (schedule,) = re.findall(r"`spotrail:model.schedule: (.*)`", part)
        assert read_schedule(schedule).text() == schedule

    def test_every_image_of_the_stack_is_pushed_before_it_is_needed(self) -> None:
        pushed = re.findall(r"docker push \"\$IMAGES/(\S+)\"", self.TEXT)
        assert pushed == [SliceSettings.image, ServingSettings.image, GuardSettings().image]
        built = re.findall(r"docker build -f (\S+)", self.TEXT)
        assert built
        assert [file for file in built if not (ROOT / file).is_file()] == []

    def test_the_training_image_has_the_ray_of_the_head(self) -> None:
        (locked,) = re.findall(r'^name = "ray"\nversion = "(.*)"$', (ROOT / "uv.lock").read_text("utf-8"), re.MULTILINE)
        assert locked == HeadSettings.ray_version
        assert "head.ray_version" in self.TEXT

    def test_it_is_short(self) -> None:
        assert len(self.TEXT.splitlines()) <= 150
