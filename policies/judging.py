"""Prices and judges what a source says about a stack: the one place where prices, rules and budgets meet."""

from __future__ import annotations

import json
from typing import Final

from policies.changes import Reading
from policies.resources import Value
from policies.rules.model import Waiver
from policies.rules.waivers import PLACE, read_waivers

STACK_FILE: Final = "Pulumi.{stack}.yaml"


def configured_waivers(reading: Reading) -> tuple[Waiver, ...]:
    """The waivers in the configuration that the source carries; none for a state. Raises InputError."""
    return read_waivers(_parsed(reading.config.get(PLACE)), f"{STACK_FILE.format(stack=reading.stack)}: {PLACE}")


def _parsed(value: Value) -> object:
    """An object of the configuration, which Pulumi hands over as JSON text; what is not JSON stays text."""
    if not isinstance(value, str):
        return None
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value
