"""The three kinds of upload, over plain HTTP: what is kept, what is refused, and how one goes on after a break."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import google_crc32c
import pytest

from tests.google_cloud.object_serving import Storage, served_buckets
from tests.loopback.raw import OBJECTS, UPLOADS, ask, begin, get, multipart, put, send, session_of

UNIT = 256 * 1024
LONG = bytes(range(256)) * (UNIT // 256) * 3 + b"the end"
NOTHING = "bytes */*"


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    with served_buckets("runs") as storage:
        yield storage


def sums(content: bytes) -> dict[str, str]:
    """Worked out beside the server."""
    crc = google_crc32c.value(content).to_bytes(4, "big")
    md5 = hashlib.md5(content, usedforsecurity=False).digest()
    return {"crc32c": base64.b64encode(crc).decode(), "md5Hash": base64.b64encode(md5).decode()}


def test_what_is_answered_to_an_upload(storage: Storage) -> None:
    made = put(storage.url, "a/b c#d.txt", b"hello")
    item = made.json
    assert (item["name"], item["bucket"], item["size"], item["metageneration"]) == ("a/b c#d.txt", "runs", "5", "1")
    assert {name: item[name] for name in ("crc32c", "md5Hash")} == sums(b"hello")
    assert item["id"] == f"runs/a/b c#d.txt/{item['generation']}"
    assert item["selfLink"].endswith("/storage/v1/b/runs/o/a%2Fb%20c%23d.txt")
    assert get(storage.url, "a/b c#d.txt").body == b"hello"


@pytest.mark.parametrize("content", [b"", b"x", b"\r\n--sep\r\n inside \r\n\r\n", LONG])
def test_the_bytes_of_each_kind_of_upload(storage: Storage, content: bytes) -> None:
    answers = {
        "media": put(storage.url, "media", content),
        "multipart": multipart(storage.url, {"name": "multipart"}, content),
        "resumable": send(storage.url, session_of(begin(storage.url, "resumable")), content),
    }
    for name, answer in answers.items():
        assert answer.code == 200
        assert answer.json | sums(content) == answer.json
        assert get(storage.url, name).body == content


def test_generations_rise_and_never_come_back(storage: Storage) -> None:
    seen = [int(put(storage.url, "g", b"1").json["generation"]) for _ in range(3)]
    ask(storage.url, "DELETE", f"{OBJECTS}/g")
    seen.append(int(put(storage.url, "g", b"1").json["generation"]))
    assert seen == sorted(set(seen))


def test_metadata_of_a_multipart_upload(storage: Storage) -> None:
    fields = {"name": "m", "metadata": {"step": "7"}, "cacheControl": "no-store", "generation": "5", "size": "9"}
    item = multipart(storage.url, fields, b"abc").json
    assert (item["metadata"], item["cacheControl"], item["contentType"]) == ({"step": "7"}, "no-store", "x/y")
    assert (item["size"], item["generation"] != "5") == ("3", True), "what the server says is not the client's to set"


def test_an_upload_in_http_chunks(storage: Storage) -> None:
    connection = http.client.HTTPConnection(storage.url.removeprefix("http://"), timeout=20)
    connection.request("POST", f"{UPLOADS}?uploadType=media&name=chunked", body=iter([b"one ", b"two ", LONG]))
    assert json.loads(connection.getresponse().read())["size"] == str(8 + len(LONG))
    connection.close()
    assert get(storage.url, "chunked").body == b"one two " + LONG


@pytest.mark.parametrize("field", ["crc32c", "md5Hash"])
def test_bytes_that_are_not_those_that_were_announced(storage: Storage, field: str) -> None:
    wrong = {"name": f"h-{field}", field: sums(b"other")[field]}
    answer = multipart(storage.url, wrong, b"these")
    assert (answer.code, "doesn't match calculated" in answer.json["error"]["message"]) == (400, True)
    session = session_of(ask(storage.url, "POST", UPLOADS, {"uploadType": "resumable"}, json.dumps(wrong)))
    assert send(storage.url, session, b"these").code == 400
    told = {"X-Goog-Hash": f"{field.removesuffix('Hash')}={wrong[field]}"}
    assert ask(storage.url, "POST", UPLOADS, {"uploadType": "media", "name": f"h-{field}"}, b"these", told).code == 400
    session = session_of(begin(storage.url, f"h-{field}"))
    assert send(storage.url, session, b"these", X_Goog_Hash=told["X-Goog-Hash"]).code == 400
    assert get(storage.url, f"h-{field}").code == 404
    assert multipart(storage.url, {"name": f"h-{field}", field: sums(b"these")[field]}, b"these").code == 200


def test_a_resumable_upload_in_chunks(storage: Storage) -> None:
    session = session_of(begin(storage.url, "chunks"))
    assert "range" not in send(storage.url, session, b"", NOTHING).headers
    first = send(storage.url, session, LONG[:UNIT], f"bytes 0-{UNIT - 1}/*")
    assert (first.code, first.headers["range"]) == (308, f"bytes=0-{UNIT - 1}")
    status = send(storage.url, session, b"", f"bytes */{len(LONG)}")
    assert (status.code, status.headers["range"]) == (308, f"bytes=0-{UNIT - 1}"), "a question ends nothing"
    assert get(storage.url, "chunks").code == 404
    rest = send(storage.url, session, LONG[UNIT:], f"bytes {UNIT}-{len(LONG) - 1}/{len(LONG)}")
    assert (rest.code, rest.json["size"]) == (200, str(len(LONG)))
    assert rest.json | sums(LONG) == rest.json
    assert get(storage.url, "chunks").body == LONG


def test_the_end_may_come_as_a_size_alone(storage: Storage) -> None:
    session = session_of(begin(storage.url, "sized"))
    send(storage.url, session, LONG[: 2 * UNIT], f"bytes 0-{2 * UNIT - 1}/*")
    made = send(storage.url, session, b"", f"bytes */{2 * UNIT}")
    assert (made.code, made.json["size"]) == (200, str(2 * UNIT))


def test_an_upload_is_made_once(storage: Storage) -> None:
    session = session_of(begin(storage.url, "once"))
    made = send(storage.url, session, b"first").json
    put(storage.url, "once", b"second")
    for content, told in ((b"", NOTHING), (b"first", "bytes 0-4/5"), (b"", "bytes */5")):
        again = send(storage.url, session, content, told)
        assert (again.code, again.json["generation"]) == (200, made["generation"])
    assert get(storage.url, "once").body == b"second"


def test_bytes_that_came_already_are_passed_over(storage: Storage) -> None:
    session = session_of(begin(storage.url, "again"))
    send(storage.url, session, LONG[: 2 * UNIT], f"bytes 0-{2 * UNIT - 1}/{len(LONG)}")
    send(storage.url, session, b"?" * UNIT + LONG[2 * UNIT :], f"bytes {UNIT}-{len(LONG) - 1}/{len(LONG)}")
    assert get(storage.url, "again").body == LONG


@pytest.mark.parametrize(
    ("content", "told", "code", "message"),
    [
        (b"x" * 5, "bytes 0-4/*", 400, "required to be equal or greater than 262144"),
        (b"x" * UNIT, f"bytes {UNIT}-{2 * UNIT - 1}/*", 503, "exceeds already uploaded size of 0 byte"),
        (b"x" * 5, "bytes 0-5/6", 400, "does not fit a body of 5 bytes"),
        (b"x" * 5, "bytes 0-4/3", 400, "goes beyond the 3 bytes"),
        (b"x" * 5, "bytes zero", 400, "Failed to parse Content-Range"),
        (b"x" * 5, "bytes 0-4/5", 400, "says 5 bytes, not 6"),
    ],
)
def test_chunks_that_cannot_be(storage: Storage, content: bytes, told: str, code: int, message: str) -> None:
    announced = {"X-Upload-Content-Length": "6"} if "not 6" in message else {}
    session = session_of(begin(storage.url, "wrong", announced))
    answer = send(storage.url, session, content, told)
    assert answer.code == code
    assert message in answer.json["error"]["message"]
    assert send(storage.url, session, b"", NOTHING).code == 308, "the session goes on"


def test_of_a_chunk_that_is_no_multiple_the_whole_units_are_kept(storage: Storage) -> None:
    session = session_of(begin(storage.url, "units"))
    answer = send(storage.url, session, LONG[: UNIT + 9], f"bytes 0-{UNIT + 8}/{len(LONG)}")
    assert answer.headers["range"] == f"bytes=0-{UNIT - 1}"


def test_an_upload_goes_on_where_its_connection_broke(storage: Storage) -> None:
    session = session_of(begin(storage.url, "broken"))
    host, port = str(urlsplit(storage.url).hostname), int(urlsplit(storage.url).port or 0)
    with socket.create_connection((host, port)) as connection:
        head = f"PUT {UPLOADS}?upload_id={session} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(LONG)}\r\n"
        head += f"Content-Range: bytes 0-{len(LONG) - 1}/{len(LONG)}\r\n\r\n"
        connection.sendall(head.encode() + LONG[: UNIT + 1000])
    while "range" not in (status := send(storage.url, session, b"", NOTHING)).headers:
        assert status.code == 308
    came = int(status.headers["range"].partition("-")[2]) + 1
    assert came == UNIT
    made = send(storage.url, session, LONG[came:], f"bytes {came}-{len(LONG) - 1}/{len(LONG)}")
    assert made.json | sums(LONG) == made.json
    assert get(storage.url, "broken").body == LONG


def test_an_upload_that_breaks_leaves_nothing(storage: Storage) -> None:
    host, port = str(urlsplit(storage.url).hostname), int(urlsplit(storage.url).port or 0)
    with socket.create_connection((host, port)) as connection:
        head = f"POST {UPLOADS}?uploadType=media&name=half HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
        connection.sendall(head.encode() + b"12345")
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(100) == b""
    assert get(storage.url, "half").code == 404


def test_an_upload_that_is_cancelled(storage: Storage) -> None:
    session = session_of(begin(storage.url, "gone"))
    assert ask(storage.url, "DELETE", UPLOADS, {"upload_id": session}).code == 499
    assert send(storage.url, session, b"", NOTHING).code == 410
    assert send(storage.url, "no-such-session", b"", NOTHING).code == 404


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"uploadType": "media"}, 400),
        ({"uploadType": "media", "name": "x" * 1025}, 400),
        ({"uploadType": "media", "name": "a\nb"}, 400),
        ({"uploadType": "media", "name": ".."}, 400),
        ({"uploadType": "floppy", "name": "x"}, 400),
        ({"uploadType": "multipart", "name": "x"}, 400),
    ],
)
def test_uploads_that_cannot_be(storage: Storage, query: dict[str, str], code: int) -> None:
    before = storage.names("runs")
    assert ask(storage.url, "POST", UPLOADS, query, b"x").code == code
    assert storage.names("runs") == before
