"""From what `--weights` and `--source` say to a folder that can be read, and the style in which to read it."""

from __future__ import annotations

import difflib
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, final

from inference.errors import ServingError
from inference.weights.reading_style import MIB, ReadingStyle
from inference.weights.sources import gcsfuse
from inference.weights.sources.address import SCHEME, Address
from inference.weights.sources.download import Download
from inference.weights.sources.kinds import LocalModel, SourceKind
from inference.weights.sources.mounts import Mount, mount_of, parse_mounts
from inference.weights.sources.progress import DownloadProgress
from inference.weights.sources.read_ahead import judge_disk, judge_fuse, read_ahead
from inference.weights.sources.transfer import Clock, Limits

_OTHER_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_MOST_READERS: Final = 16


@final
@dataclass(frozen=True, kw_only=True)
class Kernel:
    """Where Linux says what is mounted and how it is read."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")

    def mounts(self) -> tuple[Mount, ...]:
        """All of this process; none where the kernel does not say."""
        try:
            return parse_mounts(os.fsdecode((self.proc / "self" / "mounts").read_bytes()))
        except OSError:
            return ()


def resolve(
    weights: str,
    kind: SourceKind,
    *,
    cache: Path,
    progress: Callable[[DownloadProgress], None],
    verify: bool = False,
    limits: Limits | None = None,
    stop: threading.Event | None = None,
    kernel: Kernel | None = None,
) -> LocalModel:
    """Have a model on this machine.

    `weights`: a folder or gs://bucket/prefix; `cache`: where downloads go; `progress` is told of a download several
    times a second, from the calling thread; `verify`: compare what was downloaded with the digests of its manifest,
    beside the checksums of the bucket, with which it always is; `stop`: when it is set, a download ends with
    StoppedError.

    Raises ServingError for a mistake in these, CloudError for what the bucket answers.
    """
    clock = Clock()
    remote = weights.startswith(SCHEME)
    _check_kind(weights, kind, remote)
    if not remote:
        return replace(_mounted(weights, kind, kernel or Kernel()), seconds=clock.seconds)
    try:
        home = cache.expanduser()
    except RuntimeError as error:
        raise ServingError(f"{cache}: this user has no home; name a cache folder without ~") from error
    job = Download(Address.parsed(weights), home, limits or Limits(), progress, stop or threading.Event())
    got = job.run(verified=verify)
    return LocalModel(
        folder=got.folder.resolve(),
        kind=SourceKind.DOWNLOAD,
        style=disk_style(),
        warnings=got.warnings,
        bytes=got.bytes,
        fetched=got.fetched,
        seconds=clock.seconds,
    )


def disk_style() -> ReadingStyle:
    """Of a file system on a device, Hyperdisk ML above all: many large reads at once, anywhere."""
    return ReadingStyle(
        workers=min(_MOST_READERS, 2 * (os.cpu_count() or 1)),
        read_bytes=16 * MIB,
        stretch_bytes=64 * MIB,
        in_flight_bytes=1024 * MIB,
    )


def fuse_style() -> ReadingStyle:
    """Of gcsfuse and its like: forward through long stretches, since it fetches up to 200 MiB in one request and takes
    a few jumps of a descriptor for random reads.
    """
    return ReadingStyle(workers=_MOST_READERS, read_bytes=8 * MIB, stretch_bytes=256 * MIB, in_flight_bytes=2048 * MIB)


def _check_kind(weights: str, kind: SourceKind, remote: bool) -> None:
    if not weights:
        raise ServingError("--weights is empty; name a folder or gs://bucket/prefix")
    if not remote and _OTHER_SCHEME.match(weights):
        raise ServingError(f"--weights {weights}: is neither a folder nor a {SCHEME} address, and nothing else is read")
    if remote and kind in (SourceKind.DISK, SourceKind.FUSE):
        raise ServingError(
            f"--source {kind.value}: {weights} is no path; name the folder where it is mounted, or --source download"
        )
    if not remote and kind is SourceKind.DOWNLOAD:
        raise ServingError(f"--source download: {weights} is no {SCHEME} address; use --source auto for a path")


def _mounted(weights: str, kind: SourceKind, kernel: Kernel) -> LocalModel:
    mounts = kernel.mounts()
    folder = _folder(weights, mounts, kernel)
    size = _bytes_in(folder)
    mount = mount_of(folder, mounts)
    found = SourceKind.FUSE if mount is not None and mount.is_fuse else SourceKind.DISK
    taken = found if kind is SourceKind.AUTO else kind
    ahead = read_ahead(folder.stat().st_dev, kernel.sys)
    warnings = []
    if taken is not found and mount is not None:
        warnings.append(f"--source {taken.value}: {folder} is on {mount.type}; --source auto reads it as {found.value}")
    if found is SourceKind.DISK:
        warnings += judge_disk(ahead)
    elif mount is not None:
        options = gcsfuse.find_options(mount.point, kernel.proc)
        warnings += [*judge_fuse(mount, ahead), *(gcsfuse.judge(options, size) if options is not None else ())]
    style = fuse_style() if taken is SourceKind.FUSE else disk_style()
    return LocalModel(folder=folder, kind=taken, style=style, warnings=tuple(warnings), bytes=size)


def _folder(weights: str, mounts: tuple[Mount, ...], kernel: Kernel) -> Path:
    """The folder itself, links followed. Raises ServingError."""
    path = Path(weights)
    try:
        folder = path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ServingError(f"--weights {weights}: {reason}{_hint(path, mounts, kernel)}") from error
    if not folder.is_dir():
        raise ServingError(f"--weights {weights}: is a file; name the folder of the model")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise ServingError(f"--weights {weights}: may not be read by this user; see its permissions")
    return folder


def _hint(path: Path, mounts: tuple[Mount, ...], kernel: Kernel) -> str:
    """What may be meant by a path that is not there."""
    try:
        beside = sorted(each.name for each in path.parent.iterdir() if each.is_dir())
        mount = mount_of(path.parent.resolve(), mounts)
    except OSError:
        return ""
    if close := difflib.get_close_matches(path.name, beside, 1):
        return f"; did you mean {path.parent / close[0]}?"
    options = gcsfuse.find_options(mount.point, kernel.proc) if mount is not None and mount.is_fuse else None
    if options is not None and not options.on("implicit-dirs"):
        return "; gcsfuse shows only folders that have an object of their own: mount with --implicit-dirs"
    return f"; in {path.parent} are: {', '.join(beside[:10])}" if beside else ""


def _bytes_in(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.iterdir() if each.is_file())
