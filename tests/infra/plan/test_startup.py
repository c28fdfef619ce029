"""Rendering: every value is one quoted word, nothing is undefined, and no value can run a command."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest

from infra.plan import startup
from infra.plan.capacity import Role
from infra.plan.startup import (
    TEMPLATES,
    CleanJob,
    FillJob,
    HeadStartup,
    HydrateStartup,
    WorkerStartup,
    environment,
    render_clean,
    render_fill,
    render_head,
    render_hydrate,
    render_worker,
    shell_quoted,
)

ROOT = Path(__file__).resolve().parents[3]
SHELLCHECK = shutil.which("shellcheck", path=f"{ROOT}/.venv/bin") or shutil.which("shellcheck") or "shellcheck"
DIGEST = "3f9a6c0be1d2758b94c7f02a6d8e513f7b0c94a2d6e85f1370b9c2a4e6d81f35"
EXPRESSION = re.compile(r"\{\{-?(.*?)-?\}\}", re.DOTALL)
HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "a\ntouch pwned\n",
    "a\nPROGRAM\ntouch pwned\ncat <<'PROGRAM'\n",
    "a\nUNIT\ntouch pwned\n",
    "; rm -rf * & touch pwned | touch pwned",
    "$((x[$(touch pwned)]))",
    "x[$(touch pwned)]",
    "\\'; touch pwned #",
    "モデル é \u2028 $(touch pwned)",
    "--help $(touch pwned)",
    "%n$IFS$(touch${IFS}pwned)",
)


def templates() -> Iterator[Path]:
    return TEMPLATES.rglob("*.j2")


def head(text: str = "2.60.0") -> str:
    return render_head(HeadStartup(ray_version=text, python_index=text))


def worker(text: str = "plain", *, role: Role = Role.TRAIN, image: bool = True) -> str:
    return render_worker(
        WorkerStartup(
            role=role,
            slice_name=text,
            accelerator_type=text,
            chips_per_host=4,
            hosts=4,
            head_address=text,
            ray_version=text,
            python_index=text,
            apt_index=text,
            image=text if image else "",
            model_device=text,
            model_label=text,
            model_sha256=text,
        )
    )


def hydrate(text: str = "plain") -> str:
    return render_hydrate(HydrateStartup(bucket=text, path=text, manifest_sha256=text, device=text))


def fill(text: str = "plain") -> str:
    return render_fill(
        FillJob(
            project=text,
            zone=text,
            staging_disk=text,
            hydrator=text,
            size_gib=200,
            staging_type=text,
            staging_iops=3000,
            staging_throughput=600,
            machine=text,
            boot_disk_type=text,
            boot_disk_gib=20,
            boot_image=text,
            subnetwork=text,
            service_account=text,
            labels={text: text},
            timeout_seconds=1,
            access_seconds=1,
            poll_seconds=0,
            hydrate_script=hydrate(text),
            tags=(text,),
            device=text,
        )
    )


def clean(text: str = "plain") -> str:
    return render_clean(
        CleanJob(
            project=text,
            zone=text,
            staging_disk=text,
            snapshot=text,
            timeout_seconds=1,
            access_seconds=1,
            poll_seconds=0,
        )
    )


def serve(text: str = "plain") -> str:
    return worker(text, role=Role.SERVE)


def bare(text: str = "plain") -> str:
    return worker(text, image=False)


SCRIPTS: tuple[Callable[[str], str], ...] = (head, worker, serve, bare, hydrate, fill, clean)


def test_every_value_goes_through_the_one_quoting_filter() -> None:
    found = [(file, expression) for file in templates() for expression in EXPRESSION.findall(file.read_text("utf-8"))]
    assert len(found) > 40, "the templates are found"
    unquoted = [(file.name, expression) for file, expression in found if not re.search(r"\|\s*sh\s*$", expression)]
    assert unquoted == []


def test_the_search_for_unquoted_values_can_fail() -> None:
    assert EXPRESSION.findall("a={{ b }} {{- c | sh -}}") == [" b ", " c | sh "]


def test_no_template_switches_the_quoting_off() -> None:
    for file in templates():
        text = file.read_text("utf-8")
        assert not re.search(r"\{%-?\s*(filter|autoescape|raw|macro|import|extends)|\bsafe\b", text), file


def test_an_undefined_value_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="'ray_version' is undefined"):
        environment().get_template("head.sh.j2").render(python_index="", pip_wheel="", pip_sha256="")


@pytest.mark.parametrize("value", [None, True, 1.5, ["a"], b"a"])
def test_only_text_and_whole_numbers_are_words(value: Any) -> None:
    with pytest.raises(TypeError, match=f"a shell word is text or a whole number, not {type(value).__name__}"):
        shell_quoted(value)


def test_a_nul_character_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold a NUL"):
        shell_quoted("a\0b")


@pytest.mark.parametrize("value", [*HOSTILE, "", " ", "-", "~", "*", "a\\", "\n", "\r", "\t!", "{a,b}"])
def test_a_quoted_value_arrives_as_it_is(value: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"printf %s {shell_quoted(value)}"], capture_output=True, check=True, cwd="/", timeout=10
    )
    assert done.stdout.decode() == value


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("value", ["plain", "".join(HOSTILE)], ids=["plain", "hostile"])
def test_a_script_is_valid_and_clean(script: Callable[[str], str], value: str, tmp_path: Path) -> None:
    file = tmp_path / "script.sh"
    file.write_text(script(value), encoding="utf-8")
    subprocess.run(["bash", "-n", str(file)], check=True, timeout=10)
    # A quoted value may well look like an expansion, an escape or a quote, and shall be none of them.
    exclude = "SC2016" if value == "plain" else "SC1003,SC2016,SC2089"
    command = [SHELLCHECK, "--shell=bash", f"--exclude={exclude}", "--severity=style", str(file)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("script", SCRIPTS)
def test_no_value_can_run_a_command(script: Callable[[str], str], value: str, machine: Any) -> None:
    machine.has_device("x")
    machine.run(f"cd {machine.root}\n{script(value)}")
    for name in ("ray-head", "ray-health", "worker", "preemption"):
        program = machine.root / "opt/spotrail/bin" / name
        machine.know("instance/preempted", "TRUE")
        if program.exists():
            machine.run(f"cd {machine.root}\n{program.read_text('utf-8')}")
    assert not list(machine.root.parent.rglob("pwned")), f"{value!r} ran a command"


def test_the_search_for_a_command_that_ran_can_fail(machine: Any) -> None:
    machine.run(f"cd {machine.root}\nx=$(touch pwned)")
    assert list(machine.root.parent.rglob("pwned"))


@pytest.mark.parametrize("script", [worker, serve])
@pytest.mark.parametrize("value", HOSTILE)
def test_the_values_reach_the_programs_unharmed(script: Callable[[str], str], value: str, machine: Any) -> None:
    """Past the checks of a volume that hostile names cannot have: the programs get the values as data."""
    text = script(value).replace('if [ -n "$MODEL_DEVICE" ]; then mount_model; fi', "")
    code, said = machine.run(text)
    assert code == 0, said
    values = machine.root / "etc/spotrail/worker.values"
    code, read = machine.run(f'. {values}; printf "%s" "$IMAGE$SLICE$HEAD$MODEL"')
    assert (code, read) == (0, value * 4)


@pytest.mark.parametrize(
    ("image", "flags"),
    [
        ("projects/debian-cloud/global/images/family/debian-12", ("debian-cloud", "--image-family=debian-12")),
        ("projects/acme/global/images/head-2026-11", ("acme", "--image=head-2026-11")),
    ],
)
def test_a_boot_image_becomes_the_flags_of_gcloud(image: str, flags: tuple[str, str]) -> None:
    assert startup.image_flags(image) == (f"--image-project={flags[0]}", flags[1])


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("", ""),
        ("train:1", "us-central1-docker.pkg.dev/acme/images/train:1"),
        ("gcr.io/a/b:1", "gcr.io/a/b:1"),
        ("train@sha256:" + "0" * 64, "us-central1-docker.pkg.dev/acme/images/train@sha256:" + "0" * 64),
    ],
)
def test_a_short_image_is_one_of_the_stack(image: str, full: str) -> None:
    assert startup.image_reference(image, region="us-central1", project="acme", registry="images") == full


def test_mirrors_have_addresses_and_no_mirror_has_none() -> None:
    assert startup.python_index("r", "p", "pypi") == "https://r-python.pkg.dev/p/pypi/simple/"
    assert startup.apt_index("r", "p", "ubuntu") == "https://r-apt.pkg.dev/remote/p/ubuntu"
    assert startup.python_index("r", "p", "") == startup.apt_index("r", "p", "") == ""


def test_without_a_mirror_pip_asks_pypi() -> None:
    assert "PYTHON_INDEX=https://pypi.org/simple/" in render_head(HeadStartup(ray_version="2.60.0", python_index=""))


def test_a_model_volume_needs_the_digest_that_it_must_hold() -> None:
    values = {"slice_name": "dev-trainer", "accelerator_type": "v6e-8", "chips_per_host": 8, "hosts": 1}
    texts = dict.fromkeys(("head_address", "ray_version", "python_index", "apt_index", "image"), "")
    with pytest.raises(ValueError, match="dev-trainer: a model volume and the digest of its model go together"):
        WorkerStartup(role=Role.SERVE, model_device="d", **values, **texts)  # type: ignore[arg-type]


def test_a_label_of_the_file_system_fits() -> None:
    """ext4 takes 16 bytes."""
    text = render_hydrate(HydrateStartup(bucket="b", path="p", manifest_sha256=DIGEST))
    label = re.search(r"^FILESYSTEM=(\S+)$", text, re.MULTILINE)
    assert label is not None
    assert label[1] == "model-3f9a6c0b"
    assert len(label[1]) <= 16


def test_scripts_are_the_same_every_time() -> None:
    assert [script("a") for script in SCRIPTS] == [script("a") for script in SCRIPTS]
