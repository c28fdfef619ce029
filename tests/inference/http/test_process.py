"""`python -m inference` as a user starts it, on an export as `python -m training export` writes it."""

from __future__ import annotations

import contextlib
import os

# Before JAX is first used: the devices are counted then, and all tests over models have eight.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import final

import equinox as eqx
import httpx
import jax
import jax.numpy as jnp
import openai
import pytest

from inference.exit_codes import ExitCode
from tests.inference.http.serving import until
from training.export import write_export
from training.mixers.ssd import SsdConfig
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel
from training.model.tokenizer import train_tokenizer

ROOT = Path(__file__).parents[3]
SMALL = ("--port", "0", "--slots", "2", "--context", "4096", "--grid", "64", "--prefill-tokens", "64")


@final
class Process:
    """A server in a process of its own."""

    def __init__(self, *options: str, **variables: str) -> None:
        environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"} | variables
        self._process = subprocess.Popen(
            [sys.executable, "-m", "inference", *options], cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr:
            self.said.extend(self._process.stderr)

    @property
    def url(self) -> str:
        """Where it listens, once it does."""
        until(lambda: bool(self._addresses()))
        return self._addresses()[0]

    def _addresses(self) -> list[str]:
        return [word for line in self.said for word in line.split() if word.startswith("http://")]

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def status(self, path: str) -> int:
        """Of a probe."""
        return httpx.get(self.url + path, timeout=60, trust_env=False).status_code

    def signal(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)

    def wait(self, seconds: float = 120) -> int:
        """Its exit code."""
        code = self._process.wait(seconds)
        self._reader.join(10)
        return code

    def close(self) -> None:
        """End it, whatever it is at."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.terminate()
            self._process.wait(10)
        self._process.kill()
        self.wait()


@contextlib.contextmanager
def started(options: Sequence[str], **variables: str) -> Iterator[Process]:
    process = Process(*options, **variables)
    try:
        yield process
    finally:
        process.close()


@pytest.fixture(autouse=True, scope="module")
def hangups_are_heard() -> Iterator[None]:
    """Whoever runs the tests behind nohup has SIGHUP ignored, which a server takes over and means to."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    config = ModelConfig(
        vocab_size=300, d_model=16, n_layers=2, d_feed_forward=24, mixers=(SsdConfig(d_head=8, d_state=4),)
    )
    return LanguageModel.init(config, jax.random.key(5))


@pytest.fixture(scope="module")
def export(model: LanguageModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = train_tokenizer(["to be or not to be, that is the question"] * 3, 300)
    return write_export(model, tokenizer.to_json(), tmp_path_factory.mktemp("export") / "hamlet").folder


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs are kept, from one server to the next."""
    return tmp_path_factory.mktemp("compiled") / "programs"


def test_a_model_is_served_from_its_export_until_it_is_told_to_stop(
    model: LanguageModel, export: Path, compiled: Path
) -> None:
    with started(["--weights", str(export), *SMALL, "--compile-cache", str(compiled)]) as process:
        probes = [process.status(path) for path in ("/livez", "/readyz", "/startupz", "/v1/models")]
        assert probes == [200, 503, 503, 503]
        until(lambda: process.status("/readyz") == 200, 300)
        with openai.OpenAI(base_url=f"{process.url}/v1", api_key="none", max_retries=0) as client:
            _is_what_the_model_says(client, model)
            _drains(client, process)
        assert process.wait() == ExitCode.FINE
    said = "".join(process.said)
    for step in ("listening on http", "loading", "loaded 0.0", "memory: weights", "compiled ", "ready", "draining"):
        assert step in said
    assert "Traceback" not in said
    assert list(compiled.iterdir())


def test_a_model_that_answers_with_no_numbers_is_refused(
    model: LanguageModel, export: Path, compiled: Path, tmp_path: Path
) -> None:
    """Weights may be whole and be those of a run that diverged: the first token tells."""
    kept = sorted(compiled.iterdir())
    diverged = eqx.tree_at(lambda each: each.final_norm, model, replace_fn=lambda norm: jax.tree.map(_nan, norm))
    folder = write_export(diverged, (export / "tokenizer.json").read_bytes(), tmp_path / "diverged").folder
    with started(["--weights", str(folder), *SMALL, "--compile-cache", str(compiled)]) as process:
        assert process.wait(300) == ExitCode.BAD_INPUT
    said = "".join(process.said)
    assert f"error: --weights {folder}: the model answers with NaN or infinities" in said
    assert "ready\n" not in said
    assert sorted(compiled.iterdir()) == kept  # the programs are the same, and none was compiled again


def _nan(array: jax.Array) -> jax.Array:
    return jnp.full_like(array, jnp.nan)


def _is_what_the_model_says(client: openai.OpenAI, model: LanguageModel) -> None:
    """Every token is the likeliest behind those before it, by one pass of the model over all of them."""
    assert [served.id for served in client.models.list()] == ["hamlet"]
    prompt = [7, 80, 9, 200, 11] * 20
    answer = client.completions.create(
        model="hamlet",
        prompt=prompt,
        temperature=0,
        max_tokens=12,
        logprobs=0,
        extra_body={"return_token_ids": True, "ignore_eos": True},
    )
    choice = answer.choices[0]
    assert choice.model_extra is not None
    tokens: list[int] = choice.model_extra["token_ids"]
    assert len(tokens) == 12
    said = jax.nn.log_softmax(model(jnp.asarray([prompt + tokens]))[0])
    places = jnp.arange(len(prompt) - 1, len(prompt) + len(tokens) - 1)
    chosen = said[places, jnp.asarray(tokens)]
    assert jnp.allclose(chosen, said[places].max(axis=-1), atol=1e-4)
    assert choice.logprobs is not None
    assert choice.logprobs.token_logprobs == pytest.approx(chosen.tolist(), abs=1e-3)


def _drains(client: openai.OpenAI, process: Process) -> None:
    """A stream in the middle of which SIGTERM comes is ended in order; who comes then is refused."""
    usages = []
    with client.chat.completions.create(
        model="hamlet",
        messages=[{"role": "user", "content": "To be?"}],
        max_tokens=2000,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"ignore_eos": True},
    ) as stream:
        for chunk in stream:
            usages.append(chunk.usage)
            if len(usages) == 3:
                process.signal()
                until(lambda: process.status("/readyz") == 503)
                assert process.status("/livez") == 200
                with pytest.raises(openai.InternalServerError, match="shutting down"):
                    client.models.list()
    assert usages[:-1] == [None] * (len(usages) - 1)
    assert usages[-1] is not None
    assert usages[-1].completion_tokens == 2000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_it_starts_ends_it_at_once(export: Path, number: int) -> None:
    """Behind it are the imports, the load, the compilation: none of them is waited for."""
    with started(["--weights", str(export), *SMALL]) as process:
        assert process.status("/livez") == 200
        process.signal(number)
        assert process.wait() == ExitCode.FINE
    assert not [line for line in process.said if "compiled" in line or "ready" in line]


def test_weights_that_are_cut_short_are_refused_by_name(export: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(export, damaged)
    with (damaged / "model.safetensors").open("r+b") as file:
        file.truncate(2000)
    ready = []
    with started(["--weights", str(damaged), *SMALL]) as process:
        url = process.url
        while process.runs:
            with contextlib.suppress(httpx.TransportError):
                ready.append(httpx.get(url + "/readyz", timeout=5, trust_env=False).status_code)
        assert process.wait() == ExitCode.BAD_INPUT
    said = "".join(process.said)
    assert "error: " in said
    assert "model.safetensors" in said
    assert "Traceback" not in said
    assert 200 not in ready


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--weight", "x"], "did you mean --weights?"),
        (["--weights", "x", "--slots", "-1"], "--slots is -1"),
        (["--weights", "x", "--api-key-file", "/nothing"], "the API keys cannot be read"),
    ],
)
def test_a_mistake_is_one_message(options: Sequence[str], says: str) -> None:
    with started(options) as process:
        assert process.wait() == ExitCode.BAD_INPUT
    assert len(process.said) == 1
    assert process.said[0].startswith("error: ")
    assert says in process.said[0]


def test_an_endpoint_that_is_none_is_a_mistake_in_the_environment() -> None:
    with started(["--weights", "gs://models/llama"], STORAGE_EMULATOR_HOST="ftp://files") as process:
        assert process.wait() == ExitCode.BAD_INPUT
    assert len(process.said) == 1
    assert process.said[0].startswith("error: STORAGE_EMULATOR_HOST is 'ftp://files': it is of ftp")


@contextlib.contextmanager
def waiting(tmp_path: Path) -> Iterator[Process]:
    """A server that loads for two minutes: nobody is where its bucket should be."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    options = ["--weights", "gs://models/llama", "--weights-cache", str(tmp_path), "--port", "0"]
    with started(options, STORAGE_EMULATOR_HOST=endpoint, NO_PROXY="127.0.0.1") as process:
        until(lambda: any("refused; tried " in line for line in process.said))
        yield process


def test_a_bucket_that_cannot_be_reached_is_said_while_it_is_tried(tmp_path: Path) -> None:
    with waiting(tmp_path) as process:
        process.signal()
        assert process.wait() == ExitCode.FINE
    listing = [line.partition(" ")[2] for line in process.said if " listing " in line]
    assert listing[0] == "listing gs://models/llama\n"
    assert listing[1].startswith("listing gs://models/llama; no answer: gs://models: ")
    assert "refused; tried once, and again until " in listing[1]


def test_connections_that_cannot_be_taken_are_said_once_and_pass(tmp_path: Path) -> None:
    with waiting(tmp_path) as process:
        allowed, most = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        assert allowed == most  # as many as the system allows
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (48, 48))
        port = int(process.url.rpartition(":")[2])
        with contextlib.ExitStack() as clients:
            for _ in range(80):
                clients.enter_context(socket.create_connection(("127.0.0.1", port)))
            until(lambda: any("no more connections" in line for line in process.said))
            time.sleep(1.5)  # asyncio tries again every second
        assert process.status("/livez") == 200
    said = [line for line in process.said if "open files" in line and "gs://" not in line]
    assert [line.partition(" ")[2] for line in said] == [
        "warning: no more connections can be taken: Too many open files; see `ulimit -n`\n"
    ]
    assert "Traceback" not in "".join(process.said), "".join(process.said)


def test_a_server_whose_log_nobody_reads_any_more_still_ends(export: Path) -> None:
    """As behind `python -m inference ... 2>&1 | head -1`."""
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    command = [sys.executable, "-m", "inference", "--weights", str(export), *SMALL]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        process.stderr.close()
        try:
            until(lambda: httpx.get(url + "/readyz", timeout=60, trust_env=False).status_code == 200, 120)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == ExitCode.FINE
        finally:
            process.kill()


def test_a_port_that_is_taken_is_said_at_once(export: Path) -> None:
    with started(["--weights", str(export), *SMALL]) as first:
        port = first.url.rpartition(":")[2]
        with started(["--weights", str(export), "--port", port]) as second:
            assert second.wait() == ExitCode.BAD_INPUT
        assert f"--port {port}: Address already in use" in second.said[0]
