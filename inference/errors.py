"""What can be wrong with a model or a command that its user can mend: said in one message, never by a traceback."""

from __future__ import annotations


class ServingError(ValueError):
    """A mistake in what the user gave: the message names the place, the value, the rule and the way out."""
