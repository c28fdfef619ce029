"""Runs that are killed, damaged and started again at random: the newest that was committed whole is always found."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.training.checkpoint.faulty_store import DeadFrom, FaultyStore
from tests.training.checkpoint.trees import assert_same, small_tree
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.discovery import find_newest_valid
from training.checkpoint.errors import ResumeRefusedError, SaveFailedError, StoreError
from training.checkpoint.local_store import LocalStore
from training.checkpoint.restoring import restore
from training.checkpoint.retention import Retention, kept

RETENTION = Retention(keep_last=2, keep_every=5)


class Life:
    """One run over many attempts, and what has to be there."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.draw = random.Random(seed)
        self.whole: dict[int, str] = {}
        """Steps that are committed and not damaged, with their folders."""

    def attempt(self) -> None:
        """Saves some steps; dies at a write drawn at random, or ends."""
        store = FaultyStore(LocalStore(self.root))
        store.before = DeadFrom(self.draw.randrange(5, 120))
        found = self.found()
        step = 0 if found is None else found
        try:
            with Checkpointer(store, run="r", retention=RETENTION, threads=1) as checkpointer:
                for _ in range(self.draw.randrange(1, 6)):
                    step += 1
                    checkpointer.save(step, small_tree(step), {})
        except (StoreError, SaveFailedError):
            pass
        complete = {path.parent.name for path in self.root.glob("*/MANIFEST.json")}
        marked = {path.parent.name for path in self.root.glob("*/QUARANTINED.json")}
        self.whole = {int(name[:8]): name for name in sorted(complete - marked)}

    def damage(self) -> None:
        """Flips a bit of the newest, where another one is left."""
        if len(self.whole) < 2:
            return
        newest = self.root / self.whole.pop(max(self.whole))
        path = self.draw.choice(sorted(path for path in newest.rglob("*") if path.is_file()))
        content = bytearray(path.read_bytes())
        content[self.draw.randrange(len(content))] ^= 1 << self.draw.randrange(8)
        path.write_bytes(content)

    def found(self) -> int | None:
        """The step that a new attempt goes on from, which must be the newest whole one."""
        found = find_newest_valid(self.root, "r")
        assert (found and found.step) == max(self.whole, default=None)
        if found is None:
            return None
        assert_same(restore(found, small_tree(0))[0], small_tree(found.step))
        return found.step


@pytest.mark.parametrize("seed", range(8))
def test_the_newest_whole_one_is_always_found(seed: int, tmp_path: Path) -> None:
    life = Life(tmp_path, seed)
    for _ in range(8):
        life.attempt()
        if life.draw.random() < 0.4:
            life.damage()
    last = life.found()
    with Checkpointer(tmp_path, run="r", retention=RETENTION) as checkpointer:
        checkpointer.save((last or 0) + 1, small_tree(0), {})
    assert set(life.whole) >= kept(life.whole, RETENTION)
    assert life.whole, "a run that saves gets somewhere"


def test_the_check_can_fail(tmp_path: Path) -> None:
    life = Life(tmp_path, 3)
    with Checkpointer(tmp_path, run="r") as checkpointer:
        checkpointer.save(1, small_tree(2), {})
    life.whole = {1: "00000001-1"}
    with pytest.raises(AssertionError):
        life.found()
    (tmp_path / "00000001-1/PART-0.json").unlink()
    with pytest.raises(ResumeRefusedError):
        life.found()
