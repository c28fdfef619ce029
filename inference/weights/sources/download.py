"""The boot download: a model from a bucket into the cache of this machine, once.

It lists the prefix, takes what MANIFEST.json names (all that is there, where there is none), and fetches exactly the
generations of that list: an object that is replaced meanwhile is an error, never a mix. A download that was killed goes
on where it was; of several processes one downloads and the others wait for it.
"""

from __future__ import annotations

import contextlib
import difflib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import google_crc32c

from inference.errors import ServingError
from inference.weights.manifest import MANIFEST, Manifest, parse_manifest, verify_files
from inference.weights.sources.address import Address, check_apart, path_in_folder
from inference.weights.sources.arrival import Arrival
from inference.weights.sources.attempts import Halt, Trouble
from inference.weights.sources.bucket import Bucket, RemoteObject
from inference.weights.sources.entry import Entry
from inference.weights.sources.errors import CloudError
from inference.weights.sources.journal import Journal
from inference.weights.sources.progress import DownloadProgress, Stage
from inference.weights.sources.transfer import Clock, Limits, Transfer

_LARGEST_MANIFEST: Final = 16 << 20
_SHOWN: Final = 10
_TRIES: Final = 3
_VERIFIERS: Final = 8


@final
@dataclass(frozen=True, kw_only=True)
class Downloaded:
    """What is there now."""

    folder: Path
    bytes: int
    fetched: int
    warnings: tuple[str, ...]


@final
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What belongs to a model."""

    files: Mapping[str, RemoteObject]
    """By their paths in its folder."""
    manifest: Manifest | None
    """What it says of them; None where there is none."""
    warnings: tuple[str, ...] = ()


@final
class Download:
    """A download of one model."""

    def __init__(
        self,
        address: Address,
        cache: Path,
        limits: Limits,
        progress: Callable[[DownloadProgress], None],
        stop: threading.Event,
    ) -> None:
        """`stop`: when it is set, `run` raises StoppedError within moments and keeps what has come."""
        self._address = address
        self._cache = cache
        self._limits = limits
        self._progress = progress
        self._halt = Halt(stop)

    def run(self, *, verified: bool) -> Downloaded:
        """Have the model here; `verified`: compare the files with the digests of the manifest, too.

        Raises ServingError, CloudError, StoppedError.
        """
        self._tell(Stage.LISTING)
        patience, connections = self._limits.patience, self._limits.workers
        opened = Bucket(self._address.bucket, patience, connections, self._halt, self._hear)
        with contextlib.closing(opened) as bucket:
            wanted = wanted_files(bucket, self._address)
            entry = Entry.of(self._cache, self._address, wanted.files)
            if entry.is_whole():
                return self._there(entry, 0, wanted.warnings)
            with entry.locked(lambda who: self._tell(Stage.WAITING, who), self._halt):
                if entry.is_whole():
                    entry.clear()
                    return self._there(entry, 0, wanted.warnings)
                return self._made(bucket, entry, wanted, verified)

    def _made(self, bucket: Bucket, entry: Entry, wanted: Wanted, verified: bool) -> Downloaded:
        try:
            entry.arriving.mkdir(parents=True, exist_ok=True)
            known = entry.resumable()
            entry.prepare()
            with Journal(entry.journal) as journal:
                transfer = self._transferred(bucket, entry, journal, known)
            if verified and wanted.manifest is not None:
                self._verify(entry, wanted.manifest)
            entry.commit()
        except OSError as error:
            raise ServingError(f"{entry.part}: {error.strerror or error}; see to the disk of the cache") from error
        again = tuple(f"{name}: came damaged and was fetched again" for name in transfer.damaged)
        return self._there(entry, transfer.fetched, (*wanted.warnings, *again))

    def _transferred(self, bucket: Bucket, entry: Entry, journal: Journal, known: frozenset[str]) -> Transfer:
        for name in set(journal.done) - known:
            journal.forget(name)  # its file was lost or made anew
        arrivals = [
            Arrival(each, name, entry.arriving / name, journal.done.get(name, ()) if name in known else (), self._halt)
            for name, each in entry.files.items()
        ]
        transfer, clock = Transfer(bucket, journal, self._limits, self._halt), Clock()

        def told() -> None:
            self._tell(
                Stage.DOWNLOADING,
                done=sum(each.done for each in arrivals),
                total=entry.bytes,
                fetched=transfer.fetched,
                seconds=clock.seconds,
                trouble=transfer.trouble,
            )

        transfer.run(arrivals, told)
        return transfer

    def _verify(self, entry: Entry, manifest: Manifest) -> None:
        """Raises ServingError for a file that is not what the manifest says."""
        clock, read = Clock(), 0

        def told(count: int) -> None:
            nonlocal read
            self._halt.check()
            read += count
            self._tell(Stage.VERIFYING, done=read, total=entry.bytes, seconds=clock.seconds)

        verify_files(entry.arriving, manifest, workers=_VERIFIERS, read=told)

    def _there(self, entry: Entry, fetched: int, warnings: tuple[str, ...]) -> Downloaded:
        return Downloaded(folder=entry.folder, bytes=entry.bytes, fetched=fetched, warnings=warnings)

    def _hear(self, trouble: Trouble) -> None:
        self._tell(Stage.LISTING, trouble=trouble)

    def _tell(
        self,
        stage: Stage,
        subject: str = "",
        *,
        done: int = 0,
        total: int = 0,
        fetched: int = 0,
        seconds: float = 0.0,
        trouble: Trouble | None = None,
    ) -> None:
        self._progress(
            DownloadProgress(
                stage=stage,
                subject=subject or str(self._address),
                done=done,
                total=total,
                fetched=fetched,
                seconds=seconds,
                trouble=trouble,
            )
        )


def wanted_files(bucket: Bucket, address: Address) -> Wanted:
    """What belongs to the model at an address. Raises ServingError where there is none, CloudError, StoppedError."""
    listed = bucket.list(address.start).objects
    objects = {
        each.name.removeprefix(address.start): each for each in listed if each.bytes or not each.name.endswith("/")
    }
    if MANIFEST in objects:
        return _manifested(bucket, address, objects)
    if not any(name.endswith(".safetensors") and "/" not in name for name in objects):
        raise _no_model(bucket, address)
    for name in objects:
        path_in_folder(name, str(address))
    check_apart(objects, str(address))
    _check_stored(objects, address)
    return Wanted(files=objects, manifest=None)


def _manifested(bucket: Bucket, address: Address, objects: Mapping[str, RemoteObject]) -> Wanted:
    where = f"{address}/{MANIFEST}"
    _check_stored({MANIFEST: objects[MANIFEST]}, address)
    manifest = parse_manifest(_content(bucket, objects[MANIFEST], where), where)
    for name, entry in manifest.files.items():
        path_in_folder(name, where)
        if name not in objects:
            raise ServingError(f"{where}: names {name!r}, which is not there; upload the export again")
        if objects[name].bytes != entry.size:
            raise ServingError(
                f"{address}/{name}: has {objects[name].bytes} bytes, and {MANIFEST} says {entry.size}: they are of two "
                "models; upload the export again"
            )
    wanted = {name: objects[name] for name in (MANIFEST, *manifest.files)}
    _check_stored(wanted, address)
    left = sorted(set(objects) - set(wanted))
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    ignored = f"{where} does not name {', '.join(left[:_SHOWN])}{more}: not downloaded"
    return Wanted(
        files=wanted,
        manifest=manifest,
        warnings=(ignored,) if left else (),
    )


def _check_stored(files: Mapping[str, RemoteObject], address: Address) -> None:
    """Raises ServingError for an object of which no range can be read."""
    for name, remote in files.items():
        if remote.encoding not in ("", "identity"):
            raise ServingError(
                f"{address}/{name}: is stored with Content-Encoding {remote.encoding}, so that no range of it can be "
                "read; upload it again as it is (`gcloud storage cp` without --gzip-local)"
            )


def _content(bucket: Bucket, remote: RemoteObject, where: str) -> bytes:
    """Of a manifest, as its checksum has it."""
    if remote.bytes > _LARGEST_MANIFEST:
        raise ServingError(f"{where}: has {remote.bytes} bytes, more than any manifest; export the model again")
    for _ in range(_TRIES):
        content = bucket.read(remote)
        if google_crc32c.value(content) == remote.crc32c:
            return content
    raise CloudError(f"{where}: came {_TRIES} times with other bytes than its checksum (crc32c) is of; upload it again")


def _no_model(bucket: Bucket, address: Address) -> ServingError:
    """What is said where no model is, with what is there instead."""
    for prefix in dict.fromkeys((address.start, _above(address.prefix), "")):
        page = bucket.list(prefix, "/")
        names = [*page.folders, *(each.name for each in page.objects if each.name != prefix)]
        if address.prefix in names:
            return ServingError(f"{address}: is a file; name the folder of the model, gs://{address.bucket}/{prefix}")
        if names:
            there = ", ".join(f"gs://{address.bucket}/{name}" for name in names[:_SHOWN])
            close = difflib.get_close_matches(address.start or "-", names, 1)
            hint = f"did you mean gs://{address.bucket}/{close[0]}? " if close and prefix != address.start else ""
            place = f"gs://{address.bucket}/{prefix}"
            return ServingError(
                f"{address}: no model is there, neither {MANIFEST} nor a .safetensors; {hint}in {place} are: {there}"
            )
    return ServingError(f"{address}: the bucket is empty; upload an export: gcloud storage cp -r export {address}")


def _above(prefix: str) -> str:
    """The prefix one folder up."""
    folder, slash, _ = prefix.rpartition("/")
    return folder + slash
