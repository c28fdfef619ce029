"""A cloud of one project in a file, with a gcloud in front of it, and the jobs that run against it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, final

import pytest

from infra.plan.startup import CleanJob, FillJob, HydrateStartup, render_hydrate

STAGING = "dev-llama-3f9a6c0b-staging"
HYDRATOR = "dev-llama-3f9a6c0b-hydrator"
SNAPSHOT = "dev-llama-3f9a6c0b-snapshot"
DIGEST = "3f9a6c0be1d2758b94c7f02a6d8e513f7b0c94a2d6e85f1370b9c2a4e6d81f35"
LABELS = {"owner": "ml-infra", "env": "dev", "ttl": "3d", "managed-by": "spotrail", "role": "hydrate"}


@final
class Cloud:
    """What exists, and so bills; what was called; what is to go wrong."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "cloud.json"
        self.programs = folder / "programs"
        self.programs.mkdir()
        self.started: list[subprocess.Popen[str]] = []
        gcloud = self.programs / "gcloud"
        source = Path(__file__).with_name("stand_in_gcloud.py").read_text(encoding="utf-8")
        gcloud.write_text(source.replace("#!/usr/bin/env python3", f"#!{sys.executable} -SE", 1), encoding="utf-8")
        gcloud.chmod(0o755)
        self.write(
            {
                "disks": {},
                "instances": {},
                "snapshots": {},
                "new": {"disks": ["CREATING", "READY"], "instances": ["RUNNING"]},
                "verdicts": ["", "ok"],
                "faults": {},
                "calls": [],
            }
        )

    def write(self, state: Mapping[str, Any]) -> None:
        self.file.write_text(json.dumps(state), encoding="utf-8")

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        return found

    def set(self, **parts: Any) -> None:
        """Replace parts of the state."""
        self.write({**self.read(), **parts})

    @property
    def billing(self) -> set[str]:
        """Names of the disks and instances that exist."""
        state = self.read()
        return {*state["disks"], *state["instances"]}

    def calls(self, call: str) -> int:
        """How often `call`, such as `disks create`, was made."""
        return self.read()["calls"].count(call)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "CLOUD": str(self.file), "PATH": f"{self.programs}:{os.environ['PATH']}"}

    def start(self, script: str) -> subprocess.Popen[str]:
        """The script as the job runs it, with everything that it starts in a process group of its own."""
        process = subprocess.Popen(
            [shutil.which("bash") or "bash", "-c", script],
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def end(self, process: subprocess.Popen[str]) -> None:
        """Kill the script and everything that it started, as when its container is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)

    def close(self) -> None:
        """Leave no process behind."""
        for process in self.started:
            if process.poll() is None:
                self.end(process)

    def run(self, script: str) -> tuple[int, str]:
        """Exit code and what was said."""
        process = self.start(script)
        _, said = process.communicate(timeout=60)
        return process.returncode, said


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    made = Cloud(tmp_path)
    yield made
    made.close()


@pytest.fixture
def fill_job() -> FillJob:
    hydrate = HydrateStartup(bucket="acme-tpu-dev-dev-models", path="llama/v1", manifest_sha256=DIGEST)
    return FillJob(
        project="acme-tpu-dev",
        zone="us-central1-b",
        staging_disk=STAGING,
        hydrator=HYDRATOR,
        size_gib=200,
        staging_type="hyperdisk-balanced",
        staging_iops=3000,
        staging_throughput=600,
        machine="n4-standard-8",
        boot_disk_type="hyperdisk-balanced",
        boot_disk_gib=20,
        boot_image="projects/debian-cloud/global/images/family/debian-12",
        subnetwork="projects/acme-tpu-dev/regions/us-central1/subnetworks/dev-subnet",
        service_account="dev-hydrator@acme-tpu-dev.iam.gserviceaccount.com",
        labels=LABELS,
        timeout_seconds=30,
        access_seconds=2,
        poll_seconds=0,
        hydrate_script=render_hydrate(hydrate),
    )


@pytest.fixture
def clean_job() -> CleanJob:
    return CleanJob(
        project="acme-tpu-dev",
        zone="us-central1-b",
        staging_disk=STAGING,
        snapshot=SNAPSHOT,
        timeout_seconds=30,
        access_seconds=2,
        poll_seconds=0,
    )


@final
class Machine:
    """A machine whose file system is a folder, and whose commands are stand-ins that note what they are called with."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.programs = folder / "bin"
        self.log = folder / "calls.log"
        self.metadata = folder / "metadata"
        for made in (self.root, self.programs, self.metadata):
            made.mkdir()
        self.log.touch()
        for name in ("systemctl", "useradd", "mount", "umount", "mkfs.ext4", "apt-get", "pkill", "pgrep", "gcloud"):
            self.stand_in(name)
        self.stand_in("mountpoint", "exit 1")
        self.stand_in("sleep")
        self.stand_in("docker", '[ "$1" != login ] || cat >/dev/null')
        # Metadata are files; a path that is none is a 404. A PUT is kept, a URL with a file behind it is downloaded.
        self.stand_in(
            "curl",
            'url="${*: -1}"; out=""; put=""; data=""\n'
            'while [ "$#" -gt 1 ]; do case "$1" in\n'
            '  -o) out="$2"; shift ;; -X) put="$2"; shift ;; --data-raw) data="$2"; shift ;;\n'
            "  --retry | --max-time | -H | --netrc-file) shift ;;\n"
            "esac; shift; done\n"
            'file="$METADATA_FILES/$(printf "%s" "${url##*/v1/}" | tr "/:?" "___")"\n'
            'if [ "$put" = PUT ]; then printf "%s\\n" "$data" >> "$file"; exit 0; fi\n'
            '[ -e "$file" ] || exit 22\n'
            'if [ -n "$out" ]; then cp "$file" "$out"; else cat "$file"; fi',
        )
        self.know("instance/network-interfaces/0/ip", "10.64.0.9")
        self.know("instance/service-accounts/default/token", '{"access_token":"t0ken","expires_in":3599}')

    def stand_in(self, name: str, body: str = "") -> None:
        """A command that notes its call and then does `body`."""
        file = self.programs / name
        note = '{ printf "%s" "${0##*/}"; printf " %s" "$@"; printf "\\n"; } >> "$CALLS"'
        file.write_text(f"#!/bin/bash\n{note}\n{body}\n", encoding="utf-8")
        file.chmod(0o755)

    def know(self, path: str, text: str) -> None:
        """Give the metadata server (or a web server) an answer."""
        (self.metadata / path.replace("/", "_").replace(":", "_")).write_text(text, encoding="utf-8")

    def put(self, path: str) -> str:
        """What was PUT to the metadata server at `path`; empty when nothing was."""
        file = self.metadata / path.replace("/", "_")
        return file.read_text(encoding="utf-8").rstrip("\n") if file.exists() else ""

    def has_device(self, name: str, folder: str = "by-id") -> None:
        """Attach a disk."""
        device = self.root / "dev/disk" / folder / name
        device.parent.mkdir(parents=True, exist_ok=True)
        device.touch()

    @property
    def calls(self) -> list[str]:
        """Every call of a stand-in, as a line."""
        return self.log.read_text(encoding="utf-8").splitlines()

    def run(self, script: str, *arguments: str) -> tuple[int, str]:
        """Exit code and what was said. `script` is a text, or with arguments none the path of a program."""
        environment = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "SPOTRAIL_ROOT": str(self.root),
            "SPOTRAIL_PAUSE": "0",
            "CALLS": str(self.log),
            "METADATA_FILES": str(self.metadata),
            "TMPDIR": str(self.root.parent),
            "HOME": str(self.root.parent),
        }
        done = subprocess.run(
            ["bash", "-c", script, "bash", *arguments],
            env=environment,
            cwd=self.root.parent,
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
