"""A Cloud Storage of one's own for a test or a benchmark: empty buckets, served, and the environment that leads there.

with served_buckets("runs") as storage:
    subprocess.run(..., env=os.environ | storage.environment)
    storage.world.fail(Fault(kind=FaultKind.UNAVAILABLE, method="storage.objects.insert", times=2))
    assert storage.names("runs") == [...]
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from policies.audit.record import Part
from tests.google_cloud.server import served
from tests.google_cloud.world import PROJECT, World

NO_SOFT_DELETE: Final = {"retentionDurationSeconds": "0"}


@final
@dataclass(frozen=True, kw_only=True)
class Storage:
    """What is served."""

    world: World
    url: str
    """`http://127.0.0.1:PORT`."""

    @property
    def environment(self) -> Mapping[str, str]:
        """See `environment`."""
        return environment(self.url)

    def read(self, bucket: str, name: str) -> bytes:
        """The bytes of a live object, past all faults. Raises KeyError."""
        with self.world.lock:
            version = self.world.objects.find(bucket, name)
        if version is None:
            raise KeyError(name)
        return bytes(version.content)

    def damage(self, bucket: str, name: str, content: bytes) -> None:
        """Let other bytes lie under a live object, whose generation and checksums stay. Raises KeyError."""
        with self.world.lock:
            self.world.objects.damage(bucket, name, content)

    def lose(self, bucket: str, name: str) -> None:
        """Take a live object away, as if it had never been. Raises KeyError."""
        with self.world.lock:
            self.world.objects.lose(bucket, name)

    def names(self, bucket: str) -> list[str]:
        """The live objects, past all faults."""
        with self.world.lock:
            return sorted(self.world.objects.live(bucket))


@contextlib.contextmanager
def served_buckets(*names: str, world: World | None = None, port: int = 0) -> Iterator[Storage]:
    """Serve buckets without soft delete until the end of the block, in a new world where none is given."""
    world = world or World()
    add_buckets(world, *names)
    with served(world, port) as url:
        yield Storage(world=world, url=url)


def add_buckets(world: World, *names: str, **fields: Any) -> None:
    """Empty buckets without soft delete, as those for checkpoints are."""
    for name in names:
        world.add(Part.BUCKETS, name=name, **{"softDeletePolicy": NO_SOFT_DELETE, **fields})


def environment(url: str) -> Mapping[str, str]:
    """What points tensorstore, google-cloud-storage and gcsfs at a loopback, and away from Google and any proxy."""
    return {
        "TENSORSTORE_GCS_HTTP_URL": url,
        "GOOGLE_AUTH_TOKEN_FOR_TESTING": "loopback",
        "STORAGE_EMULATOR_HOST": url,
        "GOOGLE_CLOUD_PROJECT": PROJECT,
        "NO_GCE_CHECK": "true",
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
