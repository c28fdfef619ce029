"""What a network and a bucket do wrong, and that the model is right or an error for it."""

from __future__ import annotations

import http.server
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inference.weights.sources.attempts import Patience
from inference.weights.sources.errors import CloudError
from inference.weights.sources.progress import DownloadProgress, Stage
from inference.weights.sources.transfer import Limits
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.object_serving import Storage
from tests.inference.weights.sources.stored import (
    LIMITS,
    MEDIA,
    MODEL,
    PART,
    content_of,
    download,
    heal,
    hold,
    media_calls,
    noise,
    put,
    upload,
    with_manifest,
)

LIST = "storage.objects.list"
WEIGHTS = "model.safetensors"
SIZE = len(MODEL[WEIGHTS])
BRIEF = Limits(part_bytes=PART, workers=4, patience=Patience(retry_seconds=0.3, stall_seconds=0.5, stall_bytes=1))
QUICK = Limits(part_bytes=PART, workers=4, patience=Patience(retry_seconds=20, stall_seconds=0.2, stall_bytes=1))


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind=FaultKind.RATE_LIMITED, method=MEDIA, times=3),
        Fault(kind=FaultKind.UNAVAILABLE, method=MEDIA, times=3, after=2),
        Fault(kind=FaultKind.TIMED_OUT, method=MEDIA, times=2),
        Fault(kind=FaultKind.LOST, method=MEDIA, times=3),
        Fault(kind=FaultKind.CUT, method=MEDIA, times=5),
        Fault(kind=FaultKind.RESET, method=MEDIA, times=3, bytes=1000),
        Fault(kind=FaultKind.RESET, method=MEDIA, times=2, bytes=0),
        Fault(kind=FaultKind.TRUNCATED, method=MEDIA, times=5),
        Fault(kind=FaultKind.RATE_LIMITED, method=LIST, times=2),
        Fault(kind=FaultKind.CUT, method=LIST, times=1),
        Fault(kind=FaultKind.TRUNCATED, method=LIST, times=1),
        Fault(kind=FaultKind.LOST, method=LIST, times=1),
    ],
    ids=lambda fault: f"{fault.kind.name}-{fault.method.rpartition('.')[2]}-{fault.bytes}",
)
def test_what_passes_is_waited_for(storage: Storage, cache: Path, fault: Fault) -> None:
    upload(storage, MODEL)
    storage.world.fail(fault)
    got = download(cache)
    assert content_of(got.folder) == MODEL
    assert storage.world.calls.counts()[fault.method] > fault.after + (fault.times or 0)
    assert got.warnings == ()


def test_what_came_before_a_break_is_not_fetched_again(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    storage.world.fail(Fault(kind=FaultKind.CUT, method=MEDIA, object=f"*{WEIGHTS}", times=4))
    got = download(cache, limits=Limits(part_bytes=1 << 20, workers=4, patience=LIMITS.patience))
    assert content_of(got.folder) == MODEL
    assert got.fetched == got.bytes
    assert media_calls(storage, WEIGHTS) == 5  # four of them brought half of what was still to come


@pytest.mark.parametrize("fault", [FaultKind.SLOW, FaultKind.BANDWIDTH])
def test_a_connection_that_stands_still_is_given_up(storage: Storage, cache: Path, fault: FaultKind) -> None:
    upload(storage, MODEL)
    storage.world.fail(Fault(kind=fault, method=MEDIA, object=f"*{WEIGHTS}", times=2, seconds=5, rate=PART / 5))
    got = download(cache, limits=QUICK)
    assert content_of(got.folder) == MODEL
    assert got.seconds < 5
    assert media_calls(storage, WEIGHTS) == -(-SIZE // PART) + 2


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (Fault(kind=FaultKind.UNAVAILABLE, method=MEDIA), "the answer was 503; nothing came in 0.3 s of trying"),
        (Fault(kind=FaultKind.RATE_LIMITED, method=LIST), "gs://models: the answer was 429; nothing came in 0.3 s"),
        (Fault(kind=FaultKind.LOST, method=MEDIA), "gs://models/llama/v1/.*; nothing came in 0.3 s of trying"),
        (Fault(kind=FaultKind.RESET, method=MEDIA), "gs://models/llama/v1/.*; nothing came in 0.3 s of trying"),
        (Fault(kind=FaultKind.SLOW, method=MEDIA, seconds=3), "gs://models/llama/v1/.*timed out.*nothing came"),
        (Fault(kind=FaultKind.FORBIDDEN, method=LIST), "gs://models: the answer was 403.*roles/storage.objectViewer"),
        (Fault(kind=FaultKind.FORBIDDEN, method=MEDIA), "v1/.*: the answer was 403.*roles/storage.objectViewer"),
        (Fault(kind=FaultKind.UNAUTHENTICATED, method=LIST), "the answer was 401.*application-default login"),
        (Fault(kind=FaultKind.LOOP, method=LIST), "comes back to a page that it had before"),
    ],
    ids=lambda value: f"{value.kind.name}-{value.method.rpartition('.')[2]}" if isinstance(value, Fault) else "",
)
def test_what_does_not_pass_is_an_error_that_says_what_to_do(
    storage: Storage, cache: Path, fault: Fault, why: str
) -> None:
    upload(storage, MODEL)
    storage.world.fail(fault)
    with pytest.raises(CloudError, match=why):
        download(cache, limits=BRIEF)
    heal(storage)
    assert content_of(download(cache).folder) == MODEL


@pytest.mark.parametrize(("method", "stage"), [(LIST, Stage.LISTING), (MEDIA, Stage.DOWNLOADING)])
def test_what_is_tried_again_is_told_while_it_is(storage: Storage, cache: Path, method: str, stage: Stage) -> None:
    upload(storage, MODEL)
    storage.world.fail(Fault(kind=FaultKind.UNAVAILABLE, method=method))
    heard: list[DownloadProgress] = []

    def told(progress: DownloadProgress) -> None:
        heard.append(progress)
        if progress.trouble is not None and progress.trouble.tries >= 2:
            heal(storage)

    got = download(cache, progress=told)
    assert content_of(got.folder) == MODEL
    troubled = [each for each in heard if each.trouble is not None]
    assert {each.stage for each in troubled} == {stage}
    assert "the answer was 503; tried 2 times, and again until" in "".join(map(str, troubled))
    assert heard[-1].trouble is None  # what comes ends the trouble


def test_what_no_other_try_would_change_is_an_error_at_once(
    storage: Storage, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(storage, MODEL)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://:0:0")
    began = time.monotonic()
    with pytest.raises(CloudError, match=r"gs://models: .*; see HTTPS_PROXY and HTTP_PROXY in the environment"):
        download(cache)
    assert time.monotonic() - began < LIMITS.patience.retry_seconds / 2


def test_an_error_of_one_part_ends_the_waits_of_all(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    storage.world.fail(
        Fault(kind=FaultKind.UNAVAILABLE, method=MEDIA, object=f"*{WEIGHTS}"),
        Fault(kind=FaultKind.FORBIDDEN, method=MEDIA, object="*config.json"),
    )
    began = time.monotonic()
    with pytest.raises(CloudError, match=r"config.json: the answer was 403"):
        download(cache)
    assert time.monotonic() - began < LIMITS.patience.retry_seconds / 2


def test_an_object_that_is_replaced_meanwhile_is_an_error_and_never_a_mix(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    new = noise(SIZE, 5)

    def replace(progress: DownloadProgress) -> None:
        if progress.done > 3 * PART and storage.read("models", f"llama/v1/{WEIGHTS}") != new:
            put(storage, f"llama/v1/{WEIGHTS}", new)
            heal(storage)

    hold(storage, calls=5)
    with pytest.raises(CloudError, match=f"{WEIGHTS}: was replaced or deleted during the download; start again"):
        download(cache, progress=replace)
    assert content_of(download(cache).folder) == {**MODEL, WEIGHTS: new}


def test_a_byte_that_the_line_turned_over_is_found_and_fetched_again(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    storage.world.fail(
        Fault(kind=FaultKind.FLIPPED_SERVED, method=MEDIA, object=f"*{WEIGHTS}", after=3, times=1, bit=99)
    )
    got = download(cache)
    assert content_of(got.folder) == MODEL
    assert got.warnings == (f"{WEIGHTS}: came damaged and was fetched again",)
    assert got.fetched == got.bytes + SIZE  # that file alone


@pytest.mark.parametrize("fault", [True, False])
def test_bytes_that_stay_wrong_are_an_error(storage: Storage, cache: Path, fault: bool) -> None:
    upload(storage, MODEL)
    if fault:
        storage.world.fail(Fault(kind=FaultKind.FLIPPED_SERVED, method=MEDIA, object=f"*{WEIGHTS}"))
    else:
        storage.damage("models", f"llama/v1/{WEIGHTS}", noise(SIZE, 8))
    with pytest.raises(CloudError, match=f"{WEIGHTS}: came 3 times with other bytes than its checksum"):
        download(cache)
    assert [path for path in cache.iterdir() if path.suffix not in (".lock", ".part")] == []


def test_a_manifest_that_comes_damaged_is_read_again(storage: Storage, cache: Path) -> None:
    export = with_manifest(MODEL)
    upload(storage, export)
    storage.world.fail(Fault(kind=FaultKind.FLIPPED_SERVED, method=MEDIA, object="*MANIFEST.json", times=2, bit=17))
    storage.world.fail(Fault(kind=FaultKind.TRUNCATED, method=MEDIA, object="*MANIFEST.json", times=4, after=2))
    assert content_of(download(cache).folder) == export
    heal(storage)
    put(storage, "llama/v1/config.json", MODEL["config.json"])  # another version
    storage.world.fail(Fault(kind=FaultKind.FLIPPED_SERVED, method=MEDIA, object="*MANIFEST.json"))
    with pytest.raises(CloudError, match=r"MANIFEST.json: came 3 times with other bytes"):
        download(cache)


class _Odd(http.server.BaseHTTPRequestHandler):
    """A bucket of one object, with bytes that trickle or a proxy in between."""

    protocol_version = "HTTP/1.1"
    trickles = False

    def do_GET(self) -> None:
        if "alt=media" not in self.path:
            item = {"name": "m/model.safetensors", "size": "40", "crc32c": "AAAAAA==", "generation": "1"}
            self._send(200, re.sub("'", '"', str({"items": [item]})).encode())
        elif self.trickles:
            self.send_response(206)
            self.send_header("Content-Length", "40")
            self.send_header("Content-Range", self.headers["Range"].replace("=", " ") + "/40")
            self.end_headers()
            for _ in range(40):
                self.wfile.write(b"x")
                self.wfile.flush()
                if self.server.stopping.wait(0.05):  # type: ignore[attr-defined]
                    break
            self.close_connection = True
        else:
            self._send(200, b"<html>a proxy's page</html>")

    def _send(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Odd]]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Odd)
    server.daemon_threads = False
    server.stopping = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield _Odd
    server.stopping.set()  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


def test_bytes_that_trickle_are_given_up(odd: type[_Odd], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odd, "trickles", True)
    patience = Patience(retry_seconds=0.8, stall_seconds=0.3, stall_bytes=30)
    with pytest.raises(CloudError, match=r"model.safetensors: \d+ bytes came in 0\.\d s; nothing came in 0.8 s"):
        download(cache, "gs://models/m", limits=Limits(patience=patience))


def test_an_answer_of_something_else_is_an_error(odd: type[_Odd], cache: Path) -> None:
    assert odd.trickles is False
    with pytest.raises(CloudError, match=r"bytes \d+ to \d+ of 40 were asked for, and the answer has 0 to 39 of 40"):
        download(cache, "gs://models/m", limits=Limits(part_bytes=10))
