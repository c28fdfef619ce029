"""Names and labels: what Google takes, what grows too long, and what a bad label becomes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.plan.names import (
    ACCOUNT_LIMIT,
    bucket_mistake,
    bucket_name,
    cloud_name,
    derived_mistake,
    hydrator_name,
    label_key_doubt,
    label_key_mistake,
    label_value_mistake,
    name_mistake,
    sanitise_label,
    snapshot_name,
    staging_disk_name,
    volume_name,
)

DIGEST = "3f9a6c0be1d2758b94c7f02a6d8e513f7b0c94a2d6e85f1370b9c2a4e6d81f35"


def test_names_are_built_from_the_stack_and_the_digest() -> None:
    assert cloud_name("dev", "trainer") == "dev-trainer"
    assert volume_name("llama", DIGEST) == "llama-3f9a6c0b"
    assert volume_name("llama", DIGEST, "us-east5-b") == "llama-3f9a6c0b-us-east5-b"
    assert staging_disk_name("dev", "llama", DIGEST) == "dev-llama-3f9a6c0b-staging"
    assert hydrator_name("dev", "llama", DIGEST) == "dev-llama-3f9a6c0b-hydrator"
    assert snapshot_name("dev", "llama", DIGEST) == "dev-llama-3f9a6c0b-snapshot"
    assert bucket_name("acme-tpu-dev", "dev", "models") == "acme-tpu-dev-dev-models"


@pytest.mark.parametrize("name", ["a", "trainer", "a-1", "x" * 63])
def test_a_legal_name(name: str) -> None:
    assert name_mistake(name) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is not a name"),
        ("Trainer", "lower-case letters a to z"),
        ("1a", "a letter first"),
        ("a-", "no hyphen last"),
        ("a_b", "is not a name"),
        ("a.b", "is not a name"),
        ("é", "is not a name"),
        ("a\n", "is not a name"),
        ("x" * 64, "has 64 characters; at most 63"),
    ],
)
def test_an_illegal_name(name: str, why: str) -> None:
    assert re.search(why, name_mistake(name) or "")


def test_a_name_that_the_suffix_makes_too_long_says_by_how_much() -> None:
    broken = derived_mistake("a service account", "a" * 31, ACCOUNT_LIMIT)
    assert broken is not None
    assert re.search("It makes a service account .* has 31 characters; at most 30. 1 fewer, please", broken)
    assert derived_mistake("a service account", "a" * 30, ACCOUNT_LIMIT) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ab", "has 2 characters; 3 to 63"),
        ("a" * 64, "has 64 characters; 3 to 63"),
        ("acme-google-models", 'contain "google"'),
        ("goog-models", 'start with "goog"'),
        ("acme.models", 'lower-case letters, digits, "-" and "_" only'),
        ("acme-models-", "only"),
    ],
)
def test_an_illegal_bucket(name: str, why: str) -> None:
    assert re.search(why, bucket_mistake(name) or "")
    assert bucket_mistake("acme-tpu-dev-dev-models") is None


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("gs://b/run-1", 'not "/", ":"'),
        ("head.default", 'not "."'),
        ("Alice", 'not "A"'),
        ("x" * 64, "has 64 characters"),
        ("e\u0301", "not"),
        ("a b", 'not " "'),
    ],
)
def test_an_illegal_label_value(value: str, why: str) -> None:
    assert re.search(why, label_value_mistake(value) or "")


@pytest.mark.parametrize("value", ["x" * 63, "", "modèle-é", "モデル", "3f9a", "a_b-c"])
def test_a_legal_label_value(value: str) -> None:
    assert label_value_mistake(value) is None
    assert sanitise_label(value).value == value
    assert not sanitise_label(value).changed


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("9k", 'starts with a lower-case letter, not with "9"'),
        ("Key", 'not "K"'),
        ("", "has 1 to 63 characters; this one has 0"),
        ("k" * 64, "this one has 64"),
        ("-k", "starts with"),
        ("a/b", 'not "/"'),
    ],
)
def test_an_illegal_label_key(key: str, why: str) -> None:
    assert re.search(why, label_key_mistake(key) or "")


def test_a_key_of_googles_own_is_doubtful() -> None:
    assert label_key_mistake("goog-x") is None
    assert re.search("Google's own", label_key_doubt("goog-x") or "")
    assert label_key_doubt("google") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # The digits are those of sha256(text), as sha256sum prints them.
        ("Alice", "alice-3bc51062"),
        ("gs://b/run-1", "gs-b-run-1-e22050ec"),
        ("head.default", "head-default-46da1631"),
        ("x" * 64, "x" * 54 + "-7ce10097"),
        ("***", "596f4162"),
    ],
)
def test_a_bad_label_becomes_a_good_one(text: str, value: str) -> None:
    made = sanitise_label(text)
    assert made.value == value
    assert made.changed
    assert made.reason == label_value_mistake(text)


def test_texts_that_look_alike_stay_apart() -> None:
    texts = ["Alice", "alice!", "ALICE", "alice.", "a\u0301lice", "x" * 64, "x" * 65, "İ", "𝐀"]
    assert len({sanitise_label(text).value for text in texts}) == len(texts)


@given(st.text(max_size=200))
def test_what_the_sanitiser_makes_is_always_legal_and_the_same(text: str) -> None:
    made = sanitise_label(text)
    assert label_value_mistake(made.value) is None
    assert made.changed is (made.value != text) is (made.reason != "")
    assert sanitise_label(text) == made
    assert sanitise_label(made.value).value == made.value
