"""The pages on serving say what the server does: every table is held to what it is about."""

from __future__ import annotations

import ast
import inspect
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

import pytest
import yaml

from inference.assembly import MOST_ANSWERS, readings
from inference.exit_codes import ExitCode
from inference.http import running
from inference.http.answering import MOST_BEHIND
from inference.http.authentication import SHORTEST, read_keys
from inference.http.gate import OPEN
from inference.http.lifecycle import Event, Phase
from inference.http.metrics import FINISHED
from inference.http.server import AT_ONCE, MODELS
from inference.http.service import Assembled
from inference.protocol import errors
from inference.protocol.errors import ApiError
from inference.protocol.field_rows import field_table
from inference.protocol.logprobs import LEAST
from inference.settings import MIB, Settings, parse
from inference.state_cache.state_cache import MissReason
from inference.weights import progress, watchdog
from inference.weights.sources import read_ahead, resolving
from inference.weights.sources.kinds import SourceKind
from inference.weights.sources.transfer import Limits
from infra.settings.model import ServingSettings
from tests.inference.http.serving import Served, assembled, engine_for, serving, settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
API = ROOT / "docs" / "serving-api.md"
API_PAGE = API.read_text(encoding="utf-8")
WORKER = (ROOT / "infra" / "templates" / "worker.sh.j2").read_text(encoding="utf-8")
KEY = "k" * SHORTEST
ENDING = running.TELLING + 3 * running.CLOSING
"""Seconds behind the grace in which the process is over: answers are told, then it closes connections and threads."""


def table(text: str, heading: str) -> list[list[str]]:
    """The rows of the table that begins with the row `heading`."""
    lines = text[text.index(heading) :].splitlines()[2:]
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in row.removeprefix("|").removesuffix("|").split("|")] for row in rows]


def names(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def flowing(text: str) -> str:
    """Without the ends of lines, which fall anywhere."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With a key, and with what a start from weights says."""
    said = settings(context=256, grid=64, prefill_tokens=64)
    report = progress.LoadReport(
        bytes_read=1, seconds=MappingProxyType({progress.Phase.READ: 1.0}), placing_seconds=0.0, retries=0
    )
    found = assembled(engine_for(said))

    def assemble(tell: Callable[[Event], None]) -> Assembled:
        tell(Event.WEIGHTS)
        tell(Event.COMPILE)
        return Assembled(
            engine=found.engine,
            fingerprint=found.fingerprint,
            model=found.model,
            readings=readings(0.0, report, compile_seconds=0.0, devices=1),
        )

    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(KEY, encoding="ascii")
    with serving(said, assemble=assemble, keys=read_keys(file)) as server:
        yield server


class TestEndpoints:
    ROWS = table(PAGE, "| Method | Path |")

    def test_there_are_no_others(self, served: Served) -> None:
        known = {*served.running.front._routes, f"{MODELS}NAME"}
        assert sorted(names(row[1])[0] for row in self.ROWS) == sorted(known)

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
    def test_it_takes_its_method_alone(self, served: Served, row: Sequence[str]) -> None:
        method, path = row[0], names(row[1])[0].replace("NAME", "sums")
        other = {"GET": "POST", "POST": "GET"}[method]
        with served.client(headers={"authorization": f"Bearer {KEY}"}) as http:
            assert http.request(method, path).status_code == (200 if method == "GET" else 400)
            assert http.request(other, path).status_code == 405

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
    def test_it_asks_for_a_key_where_the_page_says_so(self, served: Served, row: Sequence[str]) -> None:
        with served.client() as http:
            refused = http.request(row[0], names(row[1])[0]).status_code == 401
        assert refused == (row[2] == "yes") == (names(row[1])[0] not in OPEN)


def test_fields() -> None:
    head, heading, _ = API_PAGE.partition("\n### ")
    assert heading
    written = f"{head}\n{field_table()}"
    if os.environ.get("UPDATE_GOLDEN"):
        API.write_text(written, encoding="utf-8")
    assert API.read_text(encoding="utf-8") == written, "UPDATE_GOLDEN=1 pytest tests/inference/test_serving_page.py"


class TestErrors:
    def test_each_is_one_that_is_raised(self) -> None:
        rows = [f"{row[0]} {names(row[1])[0]} {row[2].strip('`')}" for row in table(API_PAGE, "| Status |")]
        assert sorted(rows) == sorted({*_made(), *_raised()})

    def test_what_says_when_to_come_again(self) -> None:
        assert "429 and 503 have `Retry-After`" in API_PAGE
        made = [error for error in _errors() if error.retry_after is not None]
        assert {error.status for error in made} == {429, 503}


def _errors() -> list[ApiError]:
    """One of each that has a function of its own."""
    makers = [
        found
        for found in vars(errors).values()
        if inspect.isfunction(found) and get_type_hints(found).get("return") is ApiError and found is not errors.invalid
    ]
    return [_called(maker) for maker in makers if not maker.__name__.startswith("_")]


def _called(maker: Callable[..., ApiError]) -> ApiError:
    hints = get_type_hints(maker)
    needed = [name for name, found in inspect.signature(maker).parameters.items() if found.default is found.empty]
    return maker(**{name: hints[name](1) for name in needed})


def _made() -> Iterator[str]:
    for error in _errors():
        yield f"{error.status} {error.type} {error.code or 'null'}"


def _raised() -> Iterator[str]:
    """Those that are written out where they are raised, beside the module of errors."""
    for path in sorted((ROOT / "inference").rglob("*.py")):
        if path.name == "errors.py" and path.parent.name == "protocol":
            continue
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                said = {
                    each.arg: str(each.value.value) for each in call.keywords if isinstance(each.value, ast.Constant)
                }
                kind = said.get("type", "invalid_request_error")
                if call.func.id == "invalid":
                    yield f"400 invalid_request_error {said.get('code', 'null')}"
                elif call.func.id == "ApiError":
                    assert isinstance(call.args[0], ast.Constant), f"{path}:{call.lineno}"
                    yield f"{call.args[0].value!r} {kind} {said.get('code', 'null')}"


class TestMetrics:
    def test_each_is_exposed_and_no_other(self, served: Served) -> None:
        rows = [(name, row[1]) for row in table(PAGE, "| Name | Type |") for name in names(row[0])]
        with served.client() as http:
            text = http.get("/metrics").text
        exposed = re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE)
        assert sorted(rows) == sorted(each for each in exposed if not each[0].endswith("_created"))

    def test_the_words_of_labels(self) -> None:
        text = flowing(PAGE)
        assert f"1 of {', '.join(phase.value for phase in Phase)} |" in text
        (finished,) = re.findall(r"by `finished_reason`: ([^|]+)", text)
        assert re.findall(r"\w+", re.sub(r"\(.*?\)", "", finished)) == list(dict.fromkeys(FINISHED.values()))
        assert [names(row[0])[0] for row in table(PAGE, "| `reason` |")] == [reason.value for reason in MissReason]


class TestOptions:
    ROWS = table(PAGE, "| Option | Default |")

    def test_each_is_one_of_the_command_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            parse(["--help"])
        options = re.findall(r"^  (?:-h, )?(--[\w-]+)", capsys.readouterr().out, re.MULTILINE)
        assert sorted(names(row[0])[0] for row in self.ROWS) == sorted(set(options) - {"--help"})

    def test_its_default_is_what_stands_there(self) -> None:
        given = [(names(row[0])[0], names(row[1])[0]) for row in self.ROWS if names(row[1])]
        line = [word for option, default in given for word in (option, default)]
        assert parse([*line, "--weights", "x"]) == Settings(weights="x")
        silent = {"--weights", "--verify", "--model-name", "--compile-cache", "--max-body", "--api-key-file"}
        silent |= {"--allowed-origins", "--access-log"}
        assert {names(row[0])[0] for row in self.ROWS} - {option for option, _ in given} == silent


def test_exit_codes() -> None:
    assert table(PAGE, "| Exit code |") == [[str(code.value), code.meaning] for code in ExitCode]


def test_sources() -> None:
    rows = {names(row[0])[0]: row[2] for row in table(PAGE, "| `--source` |")}
    assert set(rows) == {kind.value for kind in SourceKind}
    disk, fuse, limits = resolving.disk_style(), resolving.fuse_style(), Limits()
    assert disk.workers == min(16, 2 * (os.cpu_count() or 1))
    assert f"16 at most; reads of {disk.read_bytes // MIB} MiB" in rows["disk"]
    assert f"forward through {disk.stretch_bytes // MIB} MiB" in rows["disk"]
    shown = f"{fuse.workers} threads, each forward through {fuse.stretch_bytes // MIB} MiB"
    assert f"{shown}, in reads of {fuse.read_bytes // MIB} MiB" == rows["fuse"]
    assert rows["download"].startswith(f"{limits.workers} requests of {limits.part_bytes // MIB} MiB at once")


@pytest.mark.parametrize(
    "said",
    [
        f"a key has at least {SHORTEST} characters",
        f"within {ENDING:g} s the process is over",
        f"less than {read_ahead._LEAST_FUSE_KIB:,} KiB at once, or a disk for less than {read_ahead._LEAST_DISK_KIB}",
        f"brings nothing for {watchdog.Patience().seconds:g} s is tried again, three times in all",
        f"at most {MOST_ANSWERS} answers",
        f"`{LEAST}`",
        f"is {MOST_BEHIND:,} pieces behind",
        f"by default {Settings(weights='x', context=1 << 20).body_limit >> 20} bytes a token of the context",
        f"{Settings(weights='x').body_limit // MIB} MiB at least",
        f"or {AT_ONCE} of the largest bodies are coming",
    ],
)
def test_numbers(said: str) -> None:
    assert said in flowing(PAGE) or said in flowing(API_PAGE)


class TestKubernetes:
    TEXT = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    POD: Mapping[str, Any] = yaml.safe_load(TEXT)["spec"]["template"]["spec"]
    SERVE: Mapping[str, Any] = POD["containers"][0]
    SAID = parse([str(word) for word in SERVE["args"]])

    def test_it_waits_until_the_server_has_ended(self) -> None:
        before = int(self.SERVE["lifecycle"]["preStop"]["exec"]["command"][1])
        assert self.POD["terminationGracePeriodSeconds"] >= before + self.SAID.drain_timeout + ENDING
        assert f"{before} s in which balancers forget the pod, {self.SAID.drain_timeout:g} s, and {ENDING:g}" in PAGE

    def test_on_spot_it_waits_less(self) -> None:
        said = r"has (\d+) s at best: there `sleep (\d+)` and `--drain-timeout (\d+)`"
        ((most, before, drain),) = re.findall(said, flowing(PAGE))
        assert int(before) + int(drain) + ENDING <= int(most)

    @pytest.mark.parametrize(
        ("probe", "path"), [("startupProbe", "/startupz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/livez")]
    )
    def test_probes_need_no_key(self, probe: str, path: str) -> None:
        assert self.SERVE[probe]["httpGet"] == {"path": path, "port": "http"}
        assert path in OPEN

    def test_a_pod_that_is_told_to_stop_is_left_before_it_refuses(self) -> None:
        ready = self.SERVE["readinessProbe"]
        before = int(self.SERVE["lifecycle"]["preStop"]["exec"]["command"][1])
        assert ready["periodSeconds"] * ready["failureThreshold"] <= before

    def test_paths_and_ports_are_those_of_the_command(self) -> None:
        mounts = {mount["mountPath"] for mount in self.SERVE["volumeMounts"]}
        assert {mount["name"] for mount in self.SERVE["volumeMounts"]} == {each["name"] for each in self.POD["volumes"]}
        for path in (self.SAID.weights_cache, self.SAID.compile_cache, self.SAID.api_key_file):
            assert path is not None
            assert str(path.parent) in mounts
        assert [port["containerPort"] for port in self.SERVE["ports"]] == [self.SAID.port]

    def test_the_image_listens_to_others(self) -> None:
        assert '"--host", "0.0.0.0", ' in (ROOT / "inference" / "Dockerfile").read_text(encoding="utf-8")


class TestAStack:
    def test_the_command_of_a_host_is_on_the_page(self) -> None:
        (line,) = re.findall(r'^exec docker run .*"\$IMAGE" (--weights.*)$', WORKER.replace("\\\n  ", ""), re.MULTILINE)
        (mount,) = re.findall(r"^MODEL_MOUNT=(.*)$", WORKER, re.MULTILINE)
        command = line.replace('"$MODEL_VOLUME"', mount).replace('"$PORT"', str(Settings(weights="x").port))
        command = command.replace('"$MODEL"', "llama")
        assert f"`{command}`" in PAGE
        assert parse(command.split()).served_name == "llama"

    def test_it_has_ended_before_it_is_killed(self) -> None:
        (drained,) = re.findall(r"--drain-timeout (\d+)", WORKER)
        (killed,) = re.findall(r"docker stop --time (\d+)", WORKER)
        assert int(drained) + ENDING <= int(killed)

    def test_how_it_is_started_again_and_ended(self) -> None:
        assert f"{re.findall(r'RestartSec=(.*)', WORKER)[0]} s after it ends" in flowing(PAGE)
        killed = int(re.findall(r"docker stop --time (\d+)", WORKER)[0])
        assert f"killed {killed} s later" in flowing(PAGE)
        assert int(re.findall(r"TimeoutStopSec=(\d+)", WORKER)[0]) > killed

    def test_its_settings_are_those_of_a_stack(self) -> None:
        (listed,) = re.findall(r"`spotrail:serving` \((.*?)\)", PAGE)
        assert set(names(listed)) <= set(get_type_hints(ServingSettings))


def test_the_commands_of_figures_are_there() -> None:
    modules = re.findall(r"python -m (tests\.bench\.\w+)", PAGE)
    assert modules
    assert [name for name in modules if not (ROOT / f"{name.replace('.', '/')}.py").exists()] == []


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 230
