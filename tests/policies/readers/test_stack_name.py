"""The stack that is asked for: its name, what is of another one, and one document out of several."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from policies.changes import Reading
from policies.errors import InputError
from policies.readers.errors import ReadError
from policies.readers.source import read_source
from policies.readers.stack_name import parse_stack_name
from tests.policies.readers.documents import LARGE, digest, record, state, step
from tests.policies.readers.test_events import UPDATE, stream, summary


def of(document: Any, stack: str, project: str = "reef") -> str:
    """A document of ours, as that stack would have it."""
    text = document if isinstance(document, str) else json.dumps(document)
    return text.replace("urn:pulumi:eval::reef::", f"urn:pulumi:{stack}::{project}::")


def read(text: str, wanted: str | None = None) -> Reading:
    stack = None if wanted is None else parse_stack_name(wanted)
    return read_source("reef.json", io.BytesIO(text.encode()), stack)


CREATE = digest(step("create", new=LARGE), create=1)


@pytest.mark.parametrize(
    ("text", "project", "stack"), [("dev", "", "dev"), ("org/dev", "", "dev"), ("org/reef/dev", "reef", "dev")]
)
def test_a_name_is_read_as_pulumi_writes_it(text: str, project: str, stack: str) -> None:
    name = parse_stack_name(text)
    assert (name.project, name.stack) == (project, stack)


@pytest.mark.parametrize("text", ["", " ", "/dev", "dev/", "a/b/c/d", "org//dev", "de v"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r'^"[^"]*" is no name of a stack; it is a name \(dev\), or .*project/dev'):
        parse_stack_name(text)


@pytest.mark.parametrize("document", [CREATE, state(record("coral")), stream(UPDATE, summary(update=1))])
@pytest.mark.parametrize("wanted", ["eval", "acme/eval", "acme/reef/eval"])
def test_the_stack_that_is_wanted_is_read(document: Any, wanted: str) -> None:
    text = of(document, "eval")
    assert read(text, wanted) == read(text)


@pytest.mark.parametrize("document", [CREATE, state(record("coral")), stream(UPDATE, summary(update=1))])
@pytest.mark.parametrize("wanted", ["dev", "acme/atoll/eval"])
def test_another_stack_is_refused(document: Any, wanted: str) -> None:
    said = f"^reef.json: it is of the stack reef/eval; --stack asks for {wanted}$"
    with pytest.raises(ReadError, match=said):
        read(of(document, "eval"), wanted)


def test_what_does_not_say_its_stack_is_refused() -> None:
    with pytest.raises(ReadError, match="it does not say of which stack it is; --stack asks for dev"):
        read(json.dumps(digest()), "dev")


def test_of_several_documents_the_wanted_one_is_read() -> None:
    """With the notes of its own, and not those of the other."""
    odd = digest(step("transmogrify", new=LARGE), transmogrify=1)
    both = f"{of(odd, 'dev')}\n{of(CREATE, 'prod')}\nFinished\n"
    dev, prod = read(both, "dev"), read(both, "prod")
    assert [(each.stack, len(each.after)) for each in (dev, prod)] == [("dev", 1), ("prod", 1)]
    assert [sum("transmogrify" in note for note in each.notes) for each in (dev, prod)] == [1, 0]
    assert all("text after the JSON was left out, from line 3, column 1" in each.notes for each in (dev, prod))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (None, "line 2, column 1: a second document begins here; .*name the stack that is meant with --stack"),
        ("eval", "it is of the stack reef/dev, it is of the stack reef/prod; --stack asks for eval"),
    ],
)
def test_of_several_documents_none_is_read_by_chance(wanted: str | None, said: str) -> None:
    with pytest.raises(ReadError, match=said):
        read(f"{of(CREATE, 'dev')}\n{of(CREATE, 'prod')}", wanted)


def test_two_documents_of_one_stack_are_not_chosen_between() -> None:
    with pytest.raises(ReadError, match="2 documents are of the stack dev; give one of them"):
        read(of(CREATE, "dev") * 2, "dev")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            of(stream(UPDATE, summary(update=1)), "dev") + of(stream(UPDATE, summary(update=1)), "prod"), id="streams"
        ),
        pytest.param(json.dumps(state(record("coral"), json.loads(of(record("kelp"), "prod")))), id="a state"),
    ],
)
def test_resources_of_two_stacks_have_no_sum(text: str) -> None:
    with pytest.raises(ReadError, match=r"^reef.json: its resources are of two stacks \(reef/[a-z]+ and reef/prod\)"):
        read(text)
