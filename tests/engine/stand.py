"""One stack of this repository under Pulumi's own engine: a project folder with a file backend, and what is done to it.

The program is the unmodified `infra/__main__.py`, run by the Automation API in the process of the test, as the language
host of the offline preview runs it; Google's provider is the stand-in beside this file, found on the PATH.
"""

from __future__ import annotations

import json
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import grpc
import yaml
from pulumi import automation
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2_grpc

ROOT: Final = Path(__file__).parents[2]
PROVIDER_FOLDER: Final = Path(__file__).parent
PROJECT: Final = "spotrail"
FOREIGN: Final = ("PULUMI_", "GOOGLE_", "GCLOUD_", "CLOUDSDK_", "SPOTRAIL_")
"""What a user has set for Pulumi or Google must not reach the engine of a test."""
PASSPHRASE: Final = "an invented passphrase"
SLACK_TOKEN: Final = "xoxb-invented-token-of-nobody"
SLACK_CHANNEL: Final = "#ml-alerts"
NEEDS_PROGRAM: Final = ("up", "preview")
"""Commands that run the program."""
_SECONDS: Final = 90
"""A command of the CLI that takes longer hangs."""


@final
@dataclass(frozen=True, kw_only=True)
class Ended:
    """A command of the CLI that ran to its end."""

    code: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """All that it printed."""
        return f"{self.stdout}\n{self.stderr}"


@final
@dataclass(frozen=True, kw_only=True)
class Step:
    """What an `up` has done to a resource."""

    op: str
    """As Pulumi names it: create, update, delete-replaced, ..."""
    type: str
    """Type token."""
    name: str
    """Logical name."""


@final
@dataclass(frozen=True, kw_only=True)
class Stand:
    """One stack, and its folder."""

    name: str
    """Name of the stack: dev, staging or prod."""
    folder: Path
    """The project: Pulumi.yaml, the program, the stack file, the backend, and a home of its own for Pulumi."""
    stack: automation.Stack
    """The Automation API's."""

    @property
    def stack_file(self) -> Path:
        """Its Pulumi.<name>.yaml."""
        return stack_file(self.folder, self.name)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the engine and of the provider, beside those of this process."""
        variables: dict[str, str] = self.stack.workspace.env_vars  # type: ignore[assignment]
        return variables

    def up(self, **options: Any) -> dict[str, int]:
        """`pulumi up`; the number of resources by what happened to them. Raises automation.CommandError."""
        return counted(self.stack.up(**options).summary.resource_changes)

    def failing_up(self, faults: Sequence[Mapping[str, Any]], **options: Any) -> str:
        """`pulumi up` with `faults` in the provider, which fails; what it said."""
        self.environment["SPOTRAIL_FAULTS"] = json.dumps(list(faults))
        try:
            self.stack.up(**options)
        except automation.CommandError as error:
            return str(error)
        finally:
            del self.environment["SPOTRAIL_FAULTS"]
        raise AssertionError("the up succeeded")

    def refresh(self) -> dict[str, int]:
        """`pulumi refresh`; as `up`."""
        return counted(self.stack.refresh().summary.resource_changes)

    def preview(self, **options: Any) -> dict[str, int]:
        """`pulumi preview`; the number of resources by what would happen to them. Raises automation.CommandError."""
        return counted(self.stack.preview(**options).change_summary)

    def steps(self, **options: Any) -> list[Step]:
        """`pulumi up`, as `up`; what it did to resources, in the order in which it was done."""
        events: list[automation.EngineEvent] = []
        self.stack.up(on_event=events.append, **options)
        done = [each.res_outputs_event.metadata for each in events if each.res_outputs_event]
        return [Step(op=each.op.value, type=each.type, name=each.urn.rpartition("::")[2]) for each in done]

    def run(self, line: str) -> Ended:
        """A command of a document, `pulumi up --stack dev --refresh`, with yes for an answer, that succeeds."""
        program, command, *options = shlex.split(line)
        assert (program, "--stack" in options) == ("pulumi", True), line
        with language_host(self.folder) as port:
            own = served_at(port) if command in NEEDS_PROGRAM else ()
            ended = self._cli(command, *options, "--yes", *own)
        assert ended.code == 0, ended.said
        return ended

    def preview_file(self, *options: str) -> Ended:
        """`pulumi preview --json`, as a user's shell runs it, but for the language host: that is this process."""
        with language_host(self.folder) as port:
            return self.cli("preview", "--json", "--non-interactive", *served_at(port), *options)

    def export(self) -> str:
        """`pulumi stack export`."""
        return self.cli("stack", "export").stdout

    def state(self) -> dict[str, dict[str, Any]]:
        """The exported resources by URN."""
        return {each["urn"]: each for each in json.loads(self.export())["deployment"].get("resources", [])}

    def settings(self, changes: Mapping[str, Any]) -> None:
        """Change `spotrail:` settings in the stack file; mappings are merged, None takes a key away."""
        change_settings(self.stack_file, changes)

    def cli(self, command: str, *options: str) -> Ended:
        """One command of the CLI for this stack."""
        return self._cli(*command.split(), "--stack", self.name, *options)

    def _cli(self, *words: str) -> Ended:
        ended = subprocess.run(
            ["pulumi", *words],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        return Ended(code=ended.returncode, stdout=ended.stdout, stderr=ended.stderr)


def environment(program: Path, own: Mapping[str, str]) -> dict[str, str]:
    """`own` without what is set for Pulumi or Google, and with the CLI `program` and the stand-in on the PATH."""
    first = (program.parent, PROVIDER_FOLDER, Path(sys.executable).parent)
    kept = {key: value for key, value in own.items() if not key.startswith(FOREIGN)}
    return {**kept, "PATH": os.pathsep.join([*map(str, first), own.get("PATH", os.defpath)])}


def stand(name: str, folder: Path, world: str, changes: Mapping[str, Any] | None = None, program: str = "") -> Stand:
    """A new stack `name` in `folder`, nothing of it up yet, in the loopback world served at the address `world`.

    Its settings are those of the shipped file with `changes`, and the secret token of an invented Slack app. `program`
    is the text of another program than the one of this repository.
    """
    make_project(folder, name, changes or {}, program)
    backend, home = folder / "backend", folder / "home"
    backend.mkdir()
    environment = {
        "PULUMI_BACKEND_URL": f"file://{backend}",
        "PULUMI_HOME": str(home),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "SPOTRAIL_WORLD": world,
    }
    options = automation.LocalWorkspaceOptions(work_dir=str(folder), env_vars=environment)
    stack = automation.create_stack(name, project_name=PROJECT, program=lambda: run_program(folder), opts=options)
    stack.set_config(f"{PROJECT}:slack_token", automation.ConfigValue(value=SLACK_TOKEN, secret=True))
    made = Stand(name=name, folder=folder, stack=stack)
    made.settings({"alerts": {"slack_channel": SLACK_CHANNEL}})
    return made


def make_project(folder: Path, name: str, changes: Mapping[str, Any], program: str) -> None:
    """The project of this repository in `folder`: its Pulumi.yaml, its program, and the one stack file, changed."""
    file, entry = stack_file(folder, name), folder / "infra" / "__main__.py"
    file.parent.mkdir(parents=True)
    shutil.copy(ROOT / "Pulumi.yaml", folder)
    if program:
        entry.write_text(program, encoding="utf-8")
    else:
        shutil.copy(ROOT / "infra" / "__main__.py", entry)
    shutil.copy(stack_file(ROOT, name), file)
    change_settings(file, changes)


def stack_file(folder: Path, name: str) -> Path:
    """The file of a stack of the project in `folder`."""
    return folder / "infra" / "stacks" / f"Pulumi.{name}.yaml"


def change_settings(file: Path, changes: Mapping[str, Any]) -> None:
    """Change `spotrail:` settings in a stack file; mappings are merged, None takes a key away."""
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    prefixed = {f"{PROJECT}:{key}": value for key, value in changes.items()}
    document["config"] = _merged(document["config"], prefixed)
    file.write_text(yaml.safe_dump(document), encoding="utf-8")


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    both = {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    return {key: value for key, value in both.items() if value is not None}


def run_program(folder: Path) -> None:
    """Run the program of the project in `folder`, as Pulumi's Python language host does."""
    with warnings.catch_warnings():
        # pulumi_gcp warns of names of its own as it is imported: in a user's process those are words, here they fail.
        warnings.simplefilter("ignore")
        runpy.run_path(str(folder / "infra"), run_name="__main__")


def served_at(port: int) -> tuple[str, ...]:
    """Options by which the CLI takes the program from the language host at `port`."""
    return f"--client=127.0.0.1:{port}", "--exec-kind=auto.inline"


@contextmanager
def language_host(folder: Path) -> Iterator[int]:
    """Serve the program of the project in `folder` to the engine; the port."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    host = LanguageServer(lambda: run_program(folder))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(0).wait()


def counted(changes: Mapping[Any, int] | None) -> dict[str, int]:
    """The counts by the plain names of the operations."""
    return {str(getattr(op, "value", op)): count for op, count in (changes or {}).items()}
