"""Every verb with every precondition: right, wrong and beside an object that is not there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import pytest

from tests.google_cloud.object_serving import Storage, served_buckets
from tests.loopback.raw import OBJECTS, UPLOADS, Answer, ask, begin, get, multipart, put, send, session_of

Query: TypeAlias = Mapping[str, Any]
OTHER = 17
"""A number that is neither the generation nor the metageneration of anything."""


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    with served_buckets("runs") as storage:
        yield storage


@pytest.fixture
def source(storage: Storage) -> int:
    """An object to copy from; its generation."""
    return int(put(storage.url, "source", b"source").json["generation"])


def resumable(url: str, query: Query) -> Answer:
    """Begin, and send everything at once."""
    began = begin(url, "x", **query)
    return send(url, session_of(began), b"new") if began.code == 200 else began


def compose(url: str, query: Query) -> Answer:
    body = json.dumps({"sourceObjects": [{"name": "source"}], "destination": {}})
    return ask(url, "POST", f"{OBJECTS}/x/compose", query, body)


MAKES: Mapping[str, Callable[[str, Query], Answer]] = {
    "media": lambda url, query: put(url, "x", b"new", **query),
    "multipart": lambda url, query: multipart(url, {"name": "x"}, b"new", **query),
    "resumable": resumable,
    "compose": compose,
    "rewrite": lambda url, query: ask(url, "POST", f"{OBJECTS}/source/rewriteTo/b/runs/o/x", query),
    "copy": lambda url, query: ask(url, "POST", f"{OBJECTS}/source/copyTo/b/runs/o/x", query),
    "move": lambda url, query: ask(url, "POST", f"{OBJECTS}/source/moveTo/o/x", query),
}
"""Verbs that make the object `x`, whether or not there is one."""
CHANGES: Mapping[str, Callable[[str, Query], Answer]] = {
    "patch": lambda url, query: ask(url, "PATCH", f"{OBJECTS}/x", query, '{"metadata": {"a": "b"}}'),
    "update": lambda url, query: ask(url, "PUT", f"{OBJECTS}/x", query, '{"metadata": {"a": "b"}}'),
    "delete": lambda url, query: ask(url, "DELETE", f"{OBJECTS}/x", query),
}
READS: Mapping[str, Callable[[str, Query], Answer]] = {
    "get": lambda url, query: ask(url, "GET", f"{OBJECTS}/x", query),
    "download": lambda url, query: get(url, "x", **query),
    "range": lambda url, query: get(url, "x", "bytes=0-0", **query),
}
VERBS = {**MAKES, **CHANGES, **READS}
LIVE: Mapping[str, tuple[str, Any, bool]] = {
    "generation is it": ("ifGenerationMatch", "generation", True),
    "generation is another": ("ifGenerationMatch", OTHER, False),
    "generation is none": ("ifGenerationMatch", 0, False),
    "generation is not it": ("ifGenerationNotMatch", "generation", False),
    "generation is not another": ("ifGenerationNotMatch", OTHER, True),
    "generation is not none": ("ifGenerationNotMatch", 0, True),
    "metageneration is it": ("ifMetagenerationMatch", "metageneration", True),
    "metageneration is another": ("ifMetagenerationMatch", OTHER, False),
    "metageneration is not it": ("ifMetagenerationNotMatch", "metageneration", False),
    "metageneration is not another": ("ifMetagenerationNotMatch", OTHER, True),
}
"""Parameter, value (or the field that has it), and whether it holds of an object that is there."""
ABSENT: Mapping[str, tuple[str, int, bool]] = {
    "generation is another": ("ifGenerationMatch", OTHER, False),
    "generation is none": ("ifGenerationMatch", 0, True),
    "generation is not another": ("ifGenerationNotMatch", OTHER, False),
    "generation is not none": ("ifGenerationNotMatch", 0, False),
    "metageneration is another": ("ifMetagenerationMatch", OTHER, False),
    "metageneration is not another": ("ifMetagenerationNotMatch", OTHER, True),
}
"""The same where there is no object."""


def state(storage: Storage, name: str = "x") -> tuple[Any, ...] | None:
    """Everything of an object that could change."""
    version = storage.world.objects.find("runs", name)
    if version is None:
        return None
    return version.generation, version.metageneration, bytes(version.content), version.item.get("metadata")


@pytest.mark.parametrize("case", LIVE)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("source")
def test_of_an_object_that_is_there(storage: Storage, verb: str, case: str) -> None:
    put(storage.url, "x", b"old")
    made = ask(storage.url, "PATCH", f"{OBJECTS}/x", body="{}").json
    name, value, holds = LIVE[case]
    before = state(storage)
    answer = VERBS[verb](storage.url, {name: made.get(value, value)})
    if holds:
        assert answer.code in (200, 204, 206)
        assert (state(storage) == before) is (verb in READS)
    else:
        reads_what_it_has = verb in READS and "NotMatch" in name
        assert answer.code == (304 if reads_what_it_has else 412)
        assert state(storage) == before
        if verb not in ("download", "range"):
            assert answer.reason == ("" if reads_what_it_has else "conditionNotMet")


@pytest.mark.parametrize("case", ABSENT)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("source")
def test_of_an_object_that_is_not_there(storage: Storage, verb: str, case: str) -> None:
    ask(storage.url, "DELETE", f"{OBJECTS}/x")
    name, value, holds = ABSENT[case]
    answer = VERBS[verb](storage.url, {name: value})
    if verb not in MAKES:
        assert (answer.code, state(storage)) == (404, None)
    elif holds:
        assert answer.code == 200
        assert state(storage) is not None
    else:
        assert (answer.code, answer.reason, state(storage)) == (412, "conditionNotMet", None)


@pytest.mark.parametrize("verb", ["rewrite", "copy", "move"])
@pytest.mark.parametrize("case", LIVE)
def test_of_the_source_of_a_copy(storage: Storage, source: int, verb: str, case: str) -> None:
    ask(storage.url, "DELETE", f"{OBJECTS}/x")
    name, value, holds = LIVE[case]
    given = {"generation": source, "metageneration": 1}.get(value, value)
    answer = MAKES[verb](storage.url, {name.replace("if", "ifSource"): given})
    assert answer.code == (200 if holds else 412)
    assert (state(storage) is not None) is holds
    assert (state(storage, "source") is None) is (holds and verb == "move")


@pytest.mark.parametrize("wanted", ["it", "another"])
def test_of_the_sources_of_a_composition(storage: Storage, source: int, wanted: str) -> None:
    ask(storage.url, "DELETE", f"{OBJECTS}/x")
    given = {"ifGenerationMatch": str(source if wanted == "it" else OTHER)}
    body = json.dumps({"sourceObjects": [{"name": "source", "objectPreconditions": given}]})
    answer = ask(storage.url, "POST", f"{OBJECTS}/x/compose", body=body)
    assert (answer.code, state(storage) is None) == ((200, False) if wanted == "it" else (412, True))


def test_a_resumable_upload_is_refused_where_another_was_faster(storage: Storage) -> None:
    ask(storage.url, "DELETE", f"{OBJECTS}/x")
    session = session_of(begin(storage.url, "x", ifGenerationMatch=0))
    faster = put(storage.url, "x", b"faster", ifGenerationMatch=0).json["generation"]
    for _ in range(2):
        assert send(storage.url, session, b"slower").reason == "conditionNotMet"
    assert get(storage.url, "x").body == b"faster"
    assert put(storage.url, "x", b"next", ifGenerationMatch=faster).code == 200


def test_two_preconditions_must_both_hold(storage: Storage) -> None:
    made = put(storage.url, "x", b"old").json["generation"]
    both = {"ifGenerationMatch": made, "ifMetagenerationMatch": 2}
    assert CHANGES["patch"](storage.url, both).code == 412
    assert CHANGES["patch"](storage.url, {**both, "ifMetagenerationMatch": 1}).code == 200
    assert CHANGES["patch"](storage.url, both).json["metageneration"] == "3"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("source")
def test_what_is_no_number_is_told(storage: Storage, verb: str) -> None:
    put(storage.url, "x", b"old")
    answer = VERBS[verb](storage.url, {"ifGenerationMatch": "latest"})
    assert answer.code == 400
    assert b"'ifGenerationMatch': 'latest'" in answer.body


@pytest.mark.parametrize(("name", "value", "codes"), [
    ("ifMetagenerationMatch", 1, (200, 200, 204)),
    ("ifMetagenerationMatch", OTHER, (412, 412, 412)),
    ("ifMetagenerationNotMatch", 1, (304, 412, 412)),
    ("ifMetagenerationNotMatch", OTHER, (200, 200, 204)),
])  # fmt: skip
def test_of_a_bucket(storage: Storage, name: str, value: int, codes: tuple[int, ...]) -> None:
    for verb, code in zip(("GET", "PATCH", "DELETE"), codes, strict=True):
        bucket = "/storage/v1/b/other"
        ask(storage.url, "POST", "/storage/v1/b", {"project": storage.world.project}, '{"name": "other"}')
        assert ask(storage.url, verb, bucket, {name: value}, "{}" if verb == "PATCH" else b"").code == code
        ask(storage.url, "DELETE", bucket)


def test_uploads_need_a_bucket(storage: Storage) -> None:
    for kind in ("media", "resumable"):
        path = UPLOADS.replace("runs", "nowhere")
        answer = ask(storage.url, "POST", path, {"uploadType": kind, "name": "x"}, b"{}")
        assert (answer.code, answer.json["error"]["message"]) == (404, "The specified bucket does not exist.")
