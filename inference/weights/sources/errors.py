"""What can go wrong with a source that is not the user's mistake."""

from __future__ import annotations


class CloudError(Exception):
    """The bucket, its credentials or the way to it failed: the message says which, and what to do."""


class StoppedError(Exception):
    """The program was told to stop while it downloaded. What has come is kept; the next download goes on from it."""


class PassingError(Exception):
    """The same request may be answered another time."""


class StalledError(PassingError):
    """So few bytes come that a new connection is the better choice."""
