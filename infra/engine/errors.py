"""What can go wrong between a stack's name and its graph, as errors whose messages are for the user."""

from __future__ import annotations

from typing import final

from policies.errors import InputError


class PreviewError(InputError):
    """A stack that could not be previewed. `str()` of it is the whole message."""


@final
class ProjectError(PreviewError):
    """Pulumi.yaml or the stack file is missing or cannot be used: nothing has run."""


@final
class ProgramRefused(PreviewError):  # noqa: N818
    """The program refused to go on (`pulumi.RunError`); the message is the program's own."""


@final
class ProgramFailed(PreviewError):  # noqa: N818
    """The program broke: its traceback from its own file on, or how its process ended."""


@final
class EngineRefusal(PreviewError):  # noqa: N818
    """Something that Pulumi's engine or the provider would not take; the message holds every refusal."""
