"""What holds of an engine between any two calls."""

from __future__ import annotations

import numpy as np

from inference.engine.engine import Engine
from inference.engine.slots import Phase


def assert_sound(engine: Engine) -> None:
    """Rows that are nobody's hold nothing, and device and host agree on the others."""
    pool = engine.pool
    nobody = [0, *(engine.slots[slot].row for slot in engine.free_slots())]
    for array in (*pool.state, pool.token, pool.bias, pool.seen):
        held = np.asarray(array)
        assert len(held) == engine.limits.slots + 1
        assert not np.any(held[nobody]), f"rows {nobody} are nobody's, and one of them is not empty"
    positions, seen = np.asarray(pool.state[0]), np.asarray(pool.seen)
    for slot in engine.slots:
        assert (slot.phase is Phase.FREE) == (slot.number in engine.free_slots())
        if slot.phase in (Phase.READING, Phase.ANSWERING):
            assert positions[slot.row] == slot.position
        if slot.phase is Phase.READING:
            assert slot.position < len(slot.prompt)
            assert np.sum(seen[slot.row] >> 1) == 0
        if slot.phase is Phase.ANSWERING:
            assert len(slot.prompt) <= slot.position <= engine.limits.context
            assert np.sum(seen[slot.row] >> 1) == slot.position - len(slot.prompt) + 1
