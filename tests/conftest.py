"""For every test: properties have no deadline, since a busy machine takes its time over one example."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("spotrail", deadline=None)
settings.load_profile("spotrail")
