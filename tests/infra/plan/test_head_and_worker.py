"""The head and the TPU hosts: their rendered startup scripts under bash, on a machine whose commands are stand-ins."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from infra.plan import startup
from infra.plan.capacity import Role
from infra.plan.startup import HeadStartup, WorkerStartup, render_head, render_worker

INDEX = "https://us-central1-python.pkg.dev/acme-tpu-dev/dev-pypi/simple/"
IMAGE = "us-central1-docker.pkg.dev/acme-tpu-dev/dev-images/train:1"
DEVICE = "dev-llama-3f9a6c0b-us-central1-b"
MANIFEST = b'{"schema": "spotrail.model/1", "files": []}'
TOKEN = "instance/service-accounts/default/token"
# A pip that installs Ray by writing down what it was asked for.
FAKE_PIP = """
import os, pathlib, sys
folder = pathlib.Path(sys.executable).parent
(folder / "ray").write_text("#!/bin/bash\\nprintf 'ray %s\\\\n' \\"$*\\" >> \\"$CALLS\\"\\n")
(folder / "ray").chmod(0o755)
netrc = pathlib.Path(os.environ["NETRC"]).read_text().strip()
with open(os.environ["CALLS"], "a") as log:
    log.write(f"pip {' '.join(sys.argv[1:])} with {netrc}\\n")
"""


@pytest.fixture
def worker() -> WorkerStartup:
    return WorkerStartup(
        role=Role.TRAIN,
        slice_name="dev-trainer",
        accelerator_type="v6e-16",
        chips_per_host=4,
        hosts=4,
        head_address="10.64.3.252",
        ray_version="2.60.0",
        python_index=INDEX,
        apt_index="https://us-central1-apt.pkg.dev/remote/acme-tpu-dev/dev-ubuntu",
        image=IMAGE,
    )


@pytest.fixture
def link() -> str:
    """Where the page of an index says that a wheel is, before its name."""
    return ""


@pytest.fixture
def pip(machine: Any, monkeypatch: pytest.MonkeyPatch, link: str) -> None:
    """An index that has pip."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as wheel:
        wheel.writestr("pip/__main__.py", FAKE_PIP)
    monkeypatch.setattr(startup, "PIP_SHA256", hashlib.sha256(packed.getvalue()).hexdigest())
    page = f'<a href="pip-9.0-py3-none-any.whl#sha256=0">old</a>\n<a href="{link}{startup.PIP_WHEEL}#sha256=1">new</a>'
    machine.know(f"{INDEX}pip/", page)
    (machine.metadata / f"{INDEX}pip/{startup.PIP_WHEEL}".replace("/", "_").replace(":", "_")).write_bytes(
        packed.getvalue()
    )


def program(machine: Any, name: str) -> str:
    """A program that a startup script wrote, with the machine's folder in front of absolute paths."""
    text: str = (machine.root / "opt/spotrail/bin" / name).read_text(encoding="utf-8")
    return text.replace(" /opt/spotrail", f" {machine.root}/opt/spotrail")


@pytest.mark.usefixtures("pip")
def test_the_head_installs_ray_once_and_starts_it(machine: Any) -> None:
    script = render_head(HeadStartup(ray_version="2.60.0", python_index=INDEX))
    code, said = machine.run(script)
    assert code == 0, said
    installs = [call for call in machine.calls if call.startswith("pip ")]
    assert installs == [
        f"pip install --quiet --no-cache-dir --index-url {INDEX} ray[default]==2.60.0 with "
        "machine us-central1-python.pkg.dev login oauth2accesstoken password t0ken"
    ]
    assert "systemctl enable --now ray-head.service ray-health.timer" in machine.calls
    assert machine.run(script)[0] == 0
    assert [call for call in machine.calls if call.startswith("pip ")] == installs, "a second boot installs nothing"
    assert not list(machine.root.parent.glob("tmp.*")), "no credentials are left behind"


@pytest.mark.usefixtures("pip")
@pytest.mark.parametrize("link", ["/acme-tpu-dev/dev-pypi/simple/pip/", f"{INDEX}pip/"], ids=["of-the-host", "full"])
def test_an_index_may_link_a_wheel_in_any_way(machine: Any) -> None:
    code, said = machine.run(render_head(HeadStartup(ray_version="2.60.0", python_index=INDEX)))
    assert code == 0, said


@pytest.mark.usefixtures("pip")
def test_a_new_ray_version_replaces_the_old_one_while_the_head_is_stopped(machine: Any) -> None:
    for version in ("2.60.0", "2.61.0"):
        assert machine.run(render_head(HeadStartup(ray_version=version, python_index=INDEX)))[0] == 0
    relevant = [call for call in machine.calls if call.startswith(("pip", "systemctl stop"))]
    assert [call.split(" with ")[0].split()[-1] for call in relevant] == [
        "ray-head.service",
        "ray[default]==2.60.0",
        "ray-head.service",
        "ray[default]==2.61.0",
    ]


@pytest.mark.usefixtures("pip")
def test_a_pip_with_another_digest_is_not_run(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "PIP_SHA256", "0" * 64)
    code, _ = machine.run(render_head(HeadStartup(ray_version="2.60.0", python_index=INDEX)))
    assert code != 0
    assert not any(call.startswith(("pip", "systemctl enable")) for call in machine.calls)


@pytest.mark.usefixtures("pip")
def test_ray_listens_on_the_internal_address(machine: Any) -> None:
    machine.run(render_head(HeadStartup(ray_version="2.60.0", python_index=INDEX)))
    machine.run(program(machine, "ray-head"))
    assert machine.calls[-1] == (
        "ray start --head --block --disable-usage-stats --num-cpus=0 --node-ip-address=10.64.0.9 --port=6379 "
        "--dashboard-host=10.64.0.9 --dashboard-port=8265"
    )


@pytest.mark.usefixtures("pip")
def test_a_head_that_fails_three_times_in_a_row_is_restarted(machine: Any) -> None:
    machine.run(render_head(HeadStartup(ray_version="2.60.0", python_index=INDEX)))
    (machine.root / "run").mkdir()
    health, address = program(machine, "ray-health"), "http://10.64.0.9:8265/api/gcs_healthz"

    def looks(*answers: bool) -> int:
        before = machine.calls.count("systemctl restart ray-head.service")
        for healthy in answers:
            file = machine.metadata / address.replace("/", "_").replace(":", "_")
            file.write_text("success") if healthy else file.unlink(missing_ok=True)
            assert machine.run(health)[0] == 0
        return int(machine.calls.count("systemctl restart ray-head.service")) - before

    assert looks(False, False, True, False, False) == 0, "a good answer in between counts from the start again"
    assert looks(False) == 1
    assert looks(False, False) == 0, "after a restart it counts from the start"


@pytest.mark.parametrize(("index", "first"), [("0", True), ("3", False), (None, False)])
def test_each_host_advertises_its_own_chips(
    machine: Any, worker: WorkerStartup, index: str | None, first: bool
) -> None:
    if index is not None:
        machine.know("instance/attributes/agent-worker-number", index)
    code, said = machine.run(render_worker(worker))
    assert code == 0, said
    assert ("Google does not say which host" in said) is (index is None)
    machine.run(program(machine, "worker"))
    call = machine.calls[-1]
    assert call.startswith("docker run --rm --init --name spotrail --privileged --network host")
    assert f"--entrypoint ray {IMAGE} start --block --disable-usage-stats --address=10.64.3.252:6379" in call
    resources = json.loads(call.split("--resources=")[1])
    assert resources == {"TPU": 4, "dev-trainer": 1} | ({"TPU-v6e-16-head": 1} if first else {})


def test_a_host_finds_its_number_in_the_tpu_environment_too(machine: Any, worker: WorkerStartup) -> None:
    machine.know("instance/attributes/tpu-env", "ACCELERATOR_TYPE: 'v6e-16'\nWORKER_ID: '0'\nZONE: 'us-central1-b'\n")
    machine.run(render_worker(worker))
    machine.run(program(machine, "worker"))
    assert '"TPU-v6e-16-head": 1' in machine.calls[-1]


@pytest.mark.usefixtures("pip")
def test_without_an_image_ray_runs_on_the_host(machine: Any, worker: WorkerStartup) -> None:
    single = dataclasses.replace(worker, image="", hosts=1, chips_per_host=8, accelerator_type="v6e-8")
    assert machine.run(render_worker(single))[0] == 0
    machine.run(program(machine, "worker"))
    assert machine.calls[-1].startswith("ray start --block --disable-usage-stats --address=10.64.3.252:6379")
    assert json.loads(machine.calls[-1].split("--resources=")[1]) == {"TPU": 8, "dev-trainer": 1, "TPU-v6e-8-head": 1}
    assert not any(call.startswith("docker") for call in machine.calls)


def test_docker_comes_from_the_mirror_where_it_is_missing(machine: Any, worker: WorkerStartup) -> None:
    (machine.programs / "docker").unlink()
    code, said = machine.run(render_worker(worker).replace("command -v docker", "command -v no-such-docker"))
    assert code == 0, said
    sources = machine.root / "etc/apt/sources.list.d/spotrail.list"
    assert sources.read_text(encoding="utf-8").startswith("deb [signed-by=")
    update, install = (call for call in machine.calls if call.startswith("apt-get"))
    assert f"Dir::Etc::sourcelist={sources}" in update
    assert install.endswith("install --yes --no-install-recommends docker.io")
    assert not (machine.root / "etc/apt/auth.conf.d/spotrail.conf").exists(), "the token does not stay"


def serving(worker: WorkerStartup) -> WorkerStartup:
    return dataclasses.replace(
        worker,
        role=Role.SERVE,
        hosts=1,
        accelerator_type="v6e-8",
        chips_per_host=8,
        model_device=DEVICE,
        model_label="llama",
        model_sha256=hashlib.sha256(MANIFEST).hexdigest(),
    )


def put_manifest(machine: Any, content: bytes = MANIFEST) -> None:
    (machine.root / "mnt/model").mkdir(parents=True, exist_ok=True)
    (machine.root / "mnt/model/MANIFEST.json").write_bytes(content)


@pytest.mark.parametrize("by_label", [False, True])
def test_the_model_is_mounted_read_only_and_served(machine: Any, worker: WorkerStartup, by_label: bool) -> None:
    values = serving(worker)
    label = f"model-{values.model_sha256[:8]}"
    machine.has_device(*((label, "by-label") if by_label else (f"google-{DEVICE}",)))
    put_manifest(machine)
    code, said = machine.run(render_worker(values))
    assert code == 0, said
    device = f"by-label/{label}" if by_label else f"by-id/google-{DEVICE}"
    mount = f"mount -t ext4 -o ro,noload {machine.root}/dev/disk/{device} {machine.root}/mnt/model"
    assert mount in machine.calls
    assert not any(call.startswith("mkfs") for call in machine.calls)
    machine.run(program(machine, "worker"))
    told = "--weights /mnt/model --source disk --port 8000 --model-name llama --drain-timeout 20"
    assert machine.calls[-1].endswith(f"{IMAGE} {told}")
    assert "/var/cache/spotrail:/var/cache/spotrail " in machine.calls[-1]
    assert f"--volume {machine.root}/mnt/model:/mnt/model:ro" in machine.calls[-1]


def test_a_mounted_model_is_not_mounted_again(machine: Any, worker: WorkerStartup) -> None:
    machine.has_device(f"google-{DEVICE}")
    machine.stand_in("mountpoint", "exit 0")
    put_manifest(machine)
    assert machine.run(render_worker(serving(worker)))[0] == 0
    assert not any(call.startswith("mount ") for call in machine.calls)


def test_a_volume_with_another_model_is_not_served(machine: Any, worker: WorkerStartup) -> None:
    machine.has_device(f"google-{DEVICE}")
    put_manifest(machine, b"another")
    code, said = machine.run(render_worker(serving(worker)))
    assert code != 0
    assert f"{DEVICE} does not hold the model" in said
    assert not any(call.startswith("systemctl enable") for call in machine.calls)


def test_a_volume_that_is_not_attached_is_said_to_be_so(machine: Any, worker: WorkerStartup) -> None:
    code, said = machine.run(render_worker(serving(worker)))
    assert code != 0
    assert f"the model volume {DEVICE} is not attached" in said


@pytest.mark.parametrize("training", [True, False])
def test_a_preemption_tells_the_trainers_first(machine: Any, worker: WorkerStartup, training: bool) -> None:
    machine.know("instance/attributes/agent-worker-number", "0")
    machine.run(render_worker(worker))
    machine.know("instance/preempted", "TRUE")
    machine.stand_in("pkill", "" if training else "exit 1")
    rounds = machine.root / "rounds"
    # The trainer needs three looks to commit its step.
    machine.stand_in("pgrep", f'echo x >> "{rounds}"; [ "$(wc -l < "{rounds}")" -lt 3 ]')
    before = len(machine.calls)
    assert machine.run(program(machine, "preemption"))[0] == 0
    calls = [call.split()[0] for call in machine.calls[before:] if not call.startswith(("curl", "sleep"))]
    assert calls == ["pkill", *(["pgrep"] * 3 if training else []), "systemctl"]
    assert machine.calls[-1] == "systemctl stop spotrail-worker.service"
    assert "pkill -TERM -f --  -m training( |$)" in machine.calls[before:]


def test_the_watcher_waits_for_the_notice(machine: Any, worker: WorkerStartup) -> None:
    machine.know("instance/attributes/agent-worker-number", "0")
    machine.run(render_worker(worker))
    machine.know("instance/preempted", "FALSE")
    notice = machine.metadata / "instance_preempted"
    machine.stand_in("sleep", f'[ "$(grep -c "^sleep" "$CALLS")" -lt 5 ] || printf TRUE > "{notice}"')
    machine.stand_in("pkill", "exit 1")
    assert machine.run(program(machine, "preemption"))[0] == 0
    assert machine.calls.count("sleep 1") == 5


def test_units_leave_the_programs_time_to_end(machine: Any, worker: WorkerStartup) -> None:
    machine.know("instance/attributes/agent-worker-number", "0")
    machine.run(render_worker(worker))
    unit = (machine.root / "etc/systemd/system/spotrail-worker.service").read_text(encoding="utf-8")
    assert "ExecStop=/usr/bin/docker stop --time 25 spotrail\nTimeoutStopSec=28\n" in unit
    assert "systemctl enable --now spotrail-worker.service spotrail-preemption.service" in machine.calls
    assert Path(machine.root / "etc/systemd/system/spotrail-preemption.service").exists()
