"""The one kind of error that a user can mend."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input: the message names the place, the value, the rule and the way out; the command exits 2."""
