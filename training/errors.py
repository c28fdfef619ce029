"""What can be wrong with a run that its user can mend: said in one message, never by a traceback."""

from __future__ import annotations


class TrainingError(ValueError):
    """A mistake in what the user gave: the message names the place, the value, the rule and the way out."""
