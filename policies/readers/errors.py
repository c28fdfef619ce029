"""What a reader refuses."""

from __future__ import annotations

from typing import final

from policies.errors import InputError


@final
class ReadError(InputError):
    """A source that cannot be read, or that is none: the message names the file, the place in it and the rule."""
