"""What can go wrong with checkpoints: mistakes that a user can mend, and failures of the store beneath."""

from __future__ import annotations

from training.errors import TrainingError


class CheckpointError(TrainingError):
    """A checkpoint or a folder of them is not what it should be; the message names it, and the way out."""


class ResumeRefusedError(CheckpointError):
    """Going on from these checkpoints would not be a resume (exit 7)."""


class SaveFailedError(RuntimeError):
    """A checkpoint was not committed. The ones before it stand."""


class LeaseLostError(SaveFailedError):
    """A later attempt of the run has taken over; this one commits nothing more."""


class StoreError(RuntimeError):
    """The store cannot be read or written, or did not answer in time."""


class BucketError(StoreError):
    """A bucket or its credentials failed, or did not answer in time (exit 5)."""


class NotThereError(StoreError):
    """There is no object of that name."""


class AlreadyThereError(StoreError):
    """A create-only write met an object that is there."""


class ChangedError(StoreError):
    """A conditional write met another generation than the one that was read."""
