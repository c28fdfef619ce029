"""The settings of a stack: `read_settings(config)` gives a `Settings`, or refuses the file with every mistake in it."""

from infra.settings.config import read_settings
from infra.settings.model import Settings

__all__ = ["Settings", "read_settings"]
