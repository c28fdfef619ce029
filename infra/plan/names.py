"""Names in the cloud and labels: what is legal, what is built from what, and how a bad label is made good."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from typing import Final, final

NAME_LIMIT: Final = 63
"""Characters of a resource name (RFC 1035), of a bucket name without dots, and of a label."""
ACCOUNT_LIMIT: Final = 30
"""Characters of the id of a service account."""
LABELS_LIMIT: Final = 64
"""Labels of one resource."""
DIGEST_SHOWN: Final = 8
"""Digits of a model's digest that stand in the names of its volume."""
LONGEST_SLICE_SUFFIX: Final = "-000000000"
"""The longest of what is appended to the name of a slice: by the provider, to that of an instance template."""

_RFC1035: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_BUCKET: Final = re.compile(r"[a-z0-9](?:[-_a-z0-9]*[a-z0-9])")
_RESERVED_PREFIX: Final = "goog-"
_LETTERS: Final = frozenset({"Ll", "Lo"})
_NUMBERS: Final = frozenset({"Nd", "Nl", "No"})


@final
@dataclass(frozen=True, kw_only=True)
class Sanitised:
    """A text made into a legal label value."""

    value: str
    """The label value."""
    changed: bool
    """Whether it differs from the text."""
    reason: str
    """What was wrong with the text; empty where nothing was."""


def cloud_name(env: str, *parts: str) -> str:
    """The name of something in the cloud: the stack first, so that two stacks can share a project."""
    return "-".join((env, *parts))


def volume_name(model: str, digest: str, zone: str | None = None) -> str:
    """Logical name of a model volume: model and first 8 digits of its digest; the zone where there are several."""
    return "-".join((model, digest[:DIGEST_SHOWN], *((zone,) if zone else ())))


def staging_disk_name(env: str, model: str, digest: str) -> str:
    """Name in the cloud of the disk that a model version is staged on."""
    return cloud_name(env, volume_name(model, digest), "staging")


def hydrator_name(env: str, model: str, digest: str) -> str:
    """Name in the cloud of the VM that fills the staging disk."""
    return cloud_name(env, volume_name(model, digest), "hydrator")


def snapshot_name(env: str, model: str, digest: str) -> str:
    """Name in the cloud of the snapshot of a model version, from which every zone gets its volume."""
    return cloud_name(env, volume_name(model, digest), "snapshot")


def execution_name(env: str, model: str, digest: str, step: str) -> str:
    """Name of an execution of a hydration job, `fill` or `clean`: the job's, and a token as long as this one."""
    return cloud_name(env, volume_name(model, digest), step, digest[:DIGEST_SHOWN])


def bucket_name(project: str, env: str, bucket: str) -> str:
    """Name of a bucket: bucket names are one namespace for the whole world, so the project goes first."""
    return f"{project}-{env}-{bucket}"


def filesystem_label(digest: str) -> str:
    """Label of the file system on a model volume: at most 16 characters, told apart by the digest."""
    return f"model-{digest[:DIGEST_SHOWN]}"


def name_mistake(name: str, limit: int = NAME_LIMIT) -> str | None:
    """What is wrong with the name of a resource (RFC 1035), or None."""
    if len(name) > limit:
        return f'"{name}" has {len(name)} characters; at most {limit}.'
    if _RFC1035.fullmatch(name):
        return None
    return (
        f'"{name}" is not a name that Google takes: lower-case letters a to z, digits and "-", '
        "a letter first, no hyphen last."
    )


def derived_mistake(what: str, name: str, limit: int = NAME_LIMIT) -> str | None:
    """What is wrong with a `name` that is built from settings, or None. `what` says what carries it."""
    broken = name_mistake(name, limit)
    if broken is None:
        return None
    spare = len(name) - limit
    advice = f" {spare} fewer, please: the stack and what we append stand in it too." if spare > 0 else ""
    return f"It makes {what} {broken}{advice}"


def bucket_mistake(name: str) -> str | None:
    """What is wrong with the name of a bucket, or None."""
    if not 3 <= len(name) <= NAME_LIMIT:
        return f'The bucket "{name}" has {len(name)} characters; 3 to {NAME_LIMIT}.'
    if "google" in name or name.startswith("goog"):
        return f'The bucket "{name}": no bucket may start with "goog" or contain "google".'
    if _BUCKET.fullmatch(name):
        return None
    return f'The bucket "{name}" may have lower-case letters, digits, "-" and "_" only.'


def label_value_mistake(value: str) -> str | None:
    """What is wrong with the value of a label, or None. International letters are legal, where they have no case
    or are lower-case; an empty value is legal."""
    if len(value) > NAME_LIMIT:
        return f"It has {len(value)} characters; a label value has at most {NAME_LIMIT}."
    strange = sorted({character for character in value if not _label_character(character)})
    if strange:
        return f'A label value has lower-case letters, digits, "_" and "-" only, not {_listed(strange)}.'
    return None


def label_key_mistake(key: str) -> str | None:
    """What is wrong with the key of a label, or None."""
    if not key or len(key) > NAME_LIMIT:
        return f"A label key has 1 to {NAME_LIMIT} characters; this one has {len(key)}."
    strange = sorted({character for character in key if not _label_character(character)})
    if strange:
        return f'A label key has lower-case letters, digits, "_" and "-" only, not {_listed(strange)}.'
    if unicodedata.category(key[0]) not in _LETTERS:
        return f'A label key starts with a lower-case letter, not with "{key[0]}".'
    return None


def label_key_doubt(key: str) -> str | None:
    """Why a legal label key should not be used, or None."""
    if key.startswith(_RESERVED_PREFIX):
        return f'Keys that start with "{_RESERVED_PREFIX}" are Google\'s own; it may refuse or overwrite them.'
    return None


def sanitise_label(text: str) -> Sanitised:
    """`text` as a label value: itself where it is legal, else lower-cased, with `-` for what is not allowed.

    The same text always gives the same value. What was changed ends in 8 digits of the SHA-256 of the text, so that
    two texts that look alike afterwards ("Alice", "alice!") stay apart.
    """
    broken = label_value_mistake(text)
    if broken is None:
        return Sanitised(value=text, changed=False, reason="")
    lowered = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())
    kept = "".join(character if _label_character(character) else "-" for character in lowered)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_SHOWN]
    head = re.sub("-+", "-", kept)[: NAME_LIMIT - DIGEST_SHOWN - 1].strip("-")
    return Sanitised(value=f"{head}-{digest}" if head else digest, changed=True, reason=broken)


def _label_character(character: str) -> bool:
    return character in "-_" or unicodedata.category(character) in _LETTERS | _NUMBERS


def _listed(characters: list[str]) -> str:
    return ", ".join(f'"{character}"' for character in characters)
