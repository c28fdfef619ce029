"""The mistakes of one stack file, collected so that they are told together."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, final

from policies.errors import InputError

NAMESPACE: Final = "spotrail:"
SHOWN: Final = 60
"""Characters of a value that a message shows."""


@final
class SettingsError(InputError):
    """A stack file that cannot be used; the message holds every mistake in it."""


@final
@dataclass(frozen=True)
class Missing:
    """Stands for a value that the file does not have."""


MISSING: Final = Missing()


@final
@dataclass
class Mistakes:
    """Collects what is wrong with a file, at most one mistake a setting, and what is only doubtful."""

    file: str
    """Its name: `Pulumi.dev.yaml`."""
    warnings: list[str] = field(default_factory=list)
    """Doubts, as whole messages."""
    _found: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, value: object, rule: str) -> None:
        """Note that `path` (such as `model.size_gib`) breaks `rule`. What came first about a setting stays."""
        self._found.setdefault(path, self._message(path, value, rule))

    def warn(self, path: str, value: object, doubt: str) -> None:
        """Note that `path` is taken, and why somebody should look at it."""
        self.warnings.append(self._message(path, value, doubt))

    def at(self, path: str) -> bool:
        """Whether `path` itself, something in it, or what it stands in is known to be wrong."""
        return any(
            path == found or path.startswith(f"{found}.") or found.startswith((f"{path}.", f"{path}["))
            for found in self._found
        )

    def settle(self) -> None:
        """Raise SettingsError with all of them, if there are any."""
        if self._found:
            raise SettingsError("\n".join(self._found.values()))

    def _message(self, path: str, value: object, rule: str) -> str:
        # The stack's own name and Google's settings are not in our namespace: their paths say so themselves.
        place = path if ":" in path or path == "stack name" else NAMESPACE + path
        body = "\n".join(f"  {line}" for line in rule.splitlines())
        return f"{self.file}: {place} is {shown(value)}\n{body}"


def shown(value: object) -> str:
    """`value` as a message shows it: as in the file, cut where it is long."""
    if isinstance(value, Missing):
        return "not set"
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)
