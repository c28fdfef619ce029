"""The edge to Pulumi: its configuration in, settings or a refusal out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

import pulumi
from pulumi.runtime.config import CONFIG, get_config_env, get_config_secret_keys_env, is_config_secret

from infra.settings.checks import check
from infra.settings.formats import PROJECT
from infra.settings.mistakes import MISSING, Mistakes, SettingsError
from infra.settings.model import Settings
from infra.settings.reading import SLACK_TOKEN, read
from infra.settings.section import SECRET_TEXT

TEXTS: Final = ("owner", "ttl", "zone", SLACK_TOKEN)
"""Settings that are plain text. Pulumi hands every other one over as JSON."""


def read_settings(config: pulumi.Config) -> Settings:
    """The settings of the current stack, checked. `config` is `pulumi.Config("spotrail")`.

    Raises pulumi.RunError, which Pulumi prints without a traceback, with every mistake of the stack file in it.
    Doubts are logged as warnings.
    """
    project = pulumi.Config("gcp").get("project")
    try:
        settings, warnings = parse(dict(_values(config)), env=pulumi.get_stack(), project=project)
    except SettingsError as error:
        raise pulumi.RunError(str(error)) from None
    for warning in warnings:
        pulumi.log.warn(warning)
    return settings


def parse(values: Mapping[str, str], *, env: str, project: str | None) -> tuple[Settings, tuple[str, ...]]:
    """Settings and warnings out of what Pulumi hands over: for each key of `spotrail:` a text, JSON if structured.

    Raises SettingsError.
    """
    mistakes = Mistakes(f"Pulumi.{env}.yaml")
    if broken := PROJECT(project or ""):
        mistakes.add("gcp:project", project or MISSING, broken)
    plain = {key: text if key in TEXTS else _decoded(text) for key, text in values.items()}
    settings = read(plain, env=env, project=project or "", mistakes=mistakes)
    check(settings, mistakes)
    mistakes.settle()
    return settings, tuple(mistakes.warnings)


def _values(config: pulumi.Config) -> Iterator[tuple[str, str]]:
    """Every key of the namespace with its text; an encrypted one as the text that stands for a secret."""
    prefix = f"{config.name}:"
    secret = get_config_secret_keys_env()
    for full in sorted({*CONFIG.get(), *get_config_env()}):
        key = full.removeprefix(prefix)
        text = config.get(key) if full.startswith(prefix) else None
        if text is not None:
            yield key, SECRET_TEXT if full in secret or is_config_secret(full) else text


def _decoded(text: str) -> object:
    """The value of JSON `text`, numbers exact; the text itself where it is no JSON."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=str)
    except json.JSONDecodeError:
        return text
