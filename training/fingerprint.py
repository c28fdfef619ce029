"""What the numbers of a run depend on, and whether going on from a checkpoint would give the same ones.

BITWISE: a resumed run ends in the very bits of a straight one. NUMERIC: the same mathematics, rounded otherwise.
REFUSED: another run. The answer comes before the first step, with every reason.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import jax

if TYPE_CHECKING:
    from jaxtyping import PyTree

    from training.checkpoint.leaves import LeafSpec

LIBRARIES: Final = ("jax", "jaxlib", "numpy", "equinox", "optax", "libtpu")
"""Those whose arithmetic the steps are made of."""
NEUTRAL: Final = ("name", "checkpoint", "log", "skips_in_a_row", "cost_per_hour", "data")
"""Fields of a configuration, with all below them, that no number of the training depends on. What counts of the data is
in their digest; where they lie is not."""
ROUNDING: Final = ("mesh", "batch.accumulate")
"""Fields that change in which order is added up, and nothing else."""
_SETTINGS: Final = (
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_enable_x64",
    "jax_numpy_dtype_promotion",
    "jax_threefry_partitionable",
)
_DEVICE_COUNT_FLAG: Final = "--xla_force_host_platform_device_count"


@final
class Judgement(enum.Enum):
    """What a resume would be."""

    BITWISE = "BITWISE"
    NUMERIC = "NUMERIC"
    REFUSED = "REFUSED"


@final
@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The judgement of a resume."""

    judgement: Judgement
    reasons: tuple[str, ...] = ()
    """What differs, one line each; none where it is BITWISE."""

    def __str__(self) -> str:
        if not self.reasons:
            return f"{self.judgement.value}: the same code, configuration, data, devices and libraries"
        return f"{self.judgement.value}: " + "; ".join(self.reasons)


@final
@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """What the numbers of a run depend on."""

    code: str
    """sha256 of the sources of the training package."""
    config: Mapping[str, Any]
    """The configuration by the paths of its fields, without those that are neutral."""
    data: str
    """Digest of the prepared data and how batches are made of them."""
    device_kind: str
    device_count: int
    """Of all processes."""
    versions: Mapping[str, str]
    """Of the libraries."""
    settings: Mapping[str, str]
    """Of JAX and XLA, where they touch numbers."""

    def to_json(self) -> dict[str, Any]:
        """For a manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Fingerprint:
        """The opposite of `to_json`."""
        return cls(**data)

    @property
    def config_sha256(self) -> str:
        """The digest of the configuration, without what cannot change the numbers."""
        return hashlib.sha256(json.dumps(self.config, sort_keys=True).encode()).hexdigest()


def fingerprint(config: Mapping[str, Any], data: str, *, neutral: Iterable[str] = NEUTRAL) -> Fingerprint:
    """The fingerprint of this process.

    `config` is the configuration as plain data (as its YAML has it), `data` the digest of the source of batches.
    """
    import training

    return Fingerprint(
        code=code_digest(Path(training.__file__).parent),
        config=_without(flattened(config), tuple(neutral)),
        data=data,
        device_kind=_device_kind(),
        device_count=jax.device_count(),
        versions=_versions(),
        settings={name: str(getattr(jax.config, name)) for name in _SETTINGS}
        | {"XLA_FLAGS": _flags(), "LIBTPU_INIT_ARGS": os.environ.get("LIBTPU_INIT_ARGS", "")},
    )


def code_digest(package: Path) -> str:
    """sha256 over the Python sources below a folder, with their names."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def flattened(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of nested mappings by their dotted paths; lists are values. Empty mappings are kept as such."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def compare(saved: Fingerprint, now: Fingerprint) -> Verdict:
    """What going on from a checkpoint with that fingerprint would be."""
    refused: list[str] = []
    numeric: list[str] = []
    for path, was, is_ in _told(_differences(saved.config, now.config)):
        reason = f"{path} was {was}, and is {is_}"
        (numeric if _matches(path, ROUNDING) else refused).append(reason)
    if saved.data != now.data:
        refused.append(f"the data were {saved.data[:12]}, and are {now.data[:12]}")
    if saved.code != now.code:
        numeric.append("the code of the training package was changed")
    if saved.device_kind != now.device_kind:
        numeric.append(f"the device was {saved.device_kind}, and is {now.device_kind}")
    if saved.device_count != now.device_count:
        numeric.append(f"the number of devices was {saved.device_count}, and is {now.device_count}")
    for group in ("versions", "settings"):
        differences = _differences(getattr(saved, group), getattr(now, group))
        numeric += [f"{path} was {was}, and is {is_}" for path, was, is_ in differences]
    if refused:
        return Verdict(judgement=Judgement.REFUSED, reasons=(*refused, *numeric))
    if numeric:
        return Verdict(judgement=Judgement.NUMERIC, reasons=tuple(numeric))
    return Verdict(judgement=Judgement.BITWISE)


def compare_trees(saved: Iterable[LeafSpec], like: PyTree) -> tuple[str, ...]:
    """The paths in which a tree differs from the saved arrays, one line each; none where they are the same."""
    from training.checkpoint.leaves import specs_of

    was = {spec.path: spec for spec in saved}
    is_ = {spec.path: spec for spec in specs_of(like)}
    lines = []
    for path in [*was, *(path for path in is_ if path not in was)]:
        shown = path or "the tree itself"
        if path not in is_:
            lines.append(f"{shown} is in the checkpoint only, {was[path]}")
        elif path not in was:
            lines.append(f"{shown} is not in the checkpoint, {is_[path]}")
        elif was[path] != is_[path]:
            lines.append(f"{shown} was {was[path]}, and is {is_[path]}")
    if not lines and list(was) != list(is_):
        lines.append("the same arrays stand in another order")
    return tuple(lines)


def _without(flat: Mapping[str, Any], neutral: tuple[str, ...]) -> dict[str, Any]:
    kept = {path: value for path, value in flat.items() if not _matches(path, neutral)}
    plain: dict[str, Any] = json.loads(json.dumps(kept, sort_keys=True))
    return plain


def _matches(path: str, fields: tuple[str, ...]) -> bool:
    return any(path == field or path.startswith(f"{field}.") for field in fields)


_ABSENT: Final = "absent"


def _differences(saved: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    for path in sorted({*saved, *now}):
        was = json.dumps(saved[path]) if path in saved else _ABSENT
        is_ = json.dumps(now[path]) if path in now else _ABSENT
        if was != is_:
            yield path, was, is_


def _told(differences: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Without the fields of a thing that is of another type now: they say no more than that."""
    found = list(differences)
    types = tuple(path.removesuffix(".type") for path, _, _ in found if path.endswith(".type"))
    return [each for each in found if each[0].endswith(".type") or not _matches(each[0], types)]


def _device_kind() -> str:
    """The kind of the accelerator. Of a processor its model and instruction sets, which XLA compiles for."""
    kind = str(jax.devices()[0].device_kind)
    if jax.default_backend() != "cpu":
        return kind
    told: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            told.setdefault(name.strip(), value.strip())
    sets = " ".join(sorted(told.get("flags", told.get("Features", "")).split()))
    return f"{kind} {told.get('model name', platform.machine())} {hashlib.sha256(sets.encode()).hexdigest()[:8]}"


def _versions() -> dict[str, str]:
    """Of the libraries that are installed: there is no libtpu without chips."""
    versions = {}
    for name in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def _flags() -> str:
    """The flags of XLA but the number of devices, which is told apart."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    return " ".join(sorted(flag for flag in flags if not flag.startswith(_DEVICE_COUNT_FLAG)))
