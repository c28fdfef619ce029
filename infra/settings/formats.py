"""Formats of single texts: each function says what is wrong with a text, or None."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

Format: TypeAlias = Callable[[str], str | None]


def pattern(expression: str, rule: str) -> Format:
    """A format out of a regular expression that has to match in full, and the sentence that says so."""
    compiled = re.compile(expression)
    return lambda value: None if compiled.fullmatch(value) else rule


TTL: Final = pattern(r"[1-9][0-9]{0,3}[hd]", "It must be a number of hours or days: 12h, 7d.")
SHA256: Final = pattern(
    r"[0-9a-f]{64}", "It must be the SHA-256 of the model's MANIFEST.json: 64 digits 0-9 a-f (sha256sum MANIFEST.json)."
)
EMAIL: Final = pattern(r"[^@\s<>,;\"']+@[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+", "It must be an e-mail address.")
BILLING_ACCOUNT: Final = pattern(
    r"[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}",
    "It must be XXXXXX-XXXXXX-XXXXXX in digits and A to F (gcloud billing accounts list).",
)
CURRENCY: Final = pattern(r"[A-Z]{3}", "It must be a currency code: USD, EUR.")
REPOSITORY: Final = pattern(
    r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9._-]{1,100}", "It must be a GitHub repository: owner/name."
)
PROJECT: Final = pattern(
    r"[a-z](?:[-a-z0-9]{4,28})[a-z0-9]",
    "It must be the id of a Google project: 6 to 30 lower-case letters, digits and hyphens, a letter first.",
)
VERSION: Final = pattern(r"[0-9]+\.[0-9]+\.[0-9]+", "It must be an exact version: 2.60.0.")
SLACK_CHANNEL: Final = pattern(r"#[a-z0-9_-]{1,80}", "It must be the name of a channel: #ml-alerts.")
MACHINE: Final = pattern(
    r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+", "It must be a machine type: e2-standard-4 (gcloud compute machine-types list)."
)
REPOSITORY_ID: Final = pattern(
    r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", "It must be a repository id: lower-case letters, digits and hyphens."
)
RESERVATION: Final = pattern(
    r"(?:projects/[a-z][-a-z0-9:.]*/reservations/)?[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?(?:/[a-zA-Z0-9/-]+)?",
    "It must be the name of a reservation, or projects/<project>/reservations/<name>.",
)
SECRET_ID: Final = pattern(
    r"[A-Za-z0-9_-]{1,255}",
    "It must be the name of a secret of this project, not the URL itself (gcloud secrets create NAME --data-file=-).",
)
PREFIX: Final = pattern(r"[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*/", "It must be a prefix that ends in /: tmp/.")
BOOT_IMAGE: Final = pattern(
    r"projects/[a-z][-a-z0-9:.]*/global/images/(?:family/)?[a-z](?:[-a-z0-9]*[a-z0-9])?",
    "It must be projects/<project>/global/images/<name> or .../images/family/<family>.",
)
_PATH: Final = re.compile(r"[A-Za-z0-9._=-]+(?:/[A-Za-z0-9._=-]+)*")
_IMAGE: Final = re.compile(
    r"(?:[A-Za-z0-9._:-]+/)?[a-z0-9._/-]*[a-z0-9](?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)


def model_path(value: str) -> str | None:
    """A folder of the models bucket: relative, without `gs://`, `..` and a slash at either end."""
    if value.startswith("gs://"):
        return "It must be the folder in the models bucket, without gs:// and the bucket: llama/v1."
    if not _PATH.fullmatch(value) or {".", ".."} & set(value.split("/")):
        return "It must be a folder such as llama/v1: letters, digits, . _ = - and single slashes between them."
    return None


def container_image(value: str) -> str | None:
    """A container image with a tag or a digest; empty is legal."""
    if not value:
        return None
    if not _IMAGE.fullmatch(value):
        return (
            "It must be a container image: name:tag in the stack's registry, or host/path/name:tag, or name@sha256:..."
        )
    if ":" not in value.rsplit("/", 1)[-1]:
        return f"It must say which version: {value}:latest, or better a tag or digest that does not move."
    return None


def serving_image(value: str) -> str | None:
    """A container image, which serving cannot do without."""
    return container_image(value) if value else "A serving host runs an image: name:tag in the stack's registry."


def job_image(value: str) -> str | None:
    """A container image, which a job cannot do without."""
    return container_image(value) if value else "The job runs an image: name:tag in the stack's registry."


def full_image(value: str) -> str | None:
    """A container image of somebody else's registry, so that it exists before the stack does."""
    broken = serving_image(value)
    if broken is None and "/" not in value:
        return f"It must be a full reference, since it runs before the stack has images: gcr.io/.../{value}."
    return broken
