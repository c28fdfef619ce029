"""The files of a refreshed book: its lines, and where each part of it comes from."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from policies.prices.book import PriceBook
from policies.prices.provenance import Source, read_provenance
from policies.prices.refresh import SOURCE, Refreshed
from policies.prices.sku import Sku
from policies.prices.writing import BookFiles, book_files

_METHOD: Final = (
    "Refreshed on {day} from the {source}: {taken} prices are from there, by the wording of a SKU (one for each item "
    "and place, or none). Free tiers of a billing account are left out. {kept} prices that were missing there or not "
    "clear, and {untouched} that it is not asked for, are as they stood in {old} (sha256 {sha256})."
)


def refreshed_files(
    name: str,
    book: PriceBook,
    path: Path,
    refreshed: Refreshed,
    catalogue: Mapping[str, Sequence[Sku]],
    day: datetime.date,
) -> BookFiles:
    """The files of the book `name`, made on that day from `book`, which lies at `path`. Raises BookError."""
    method = _METHOD.format(
        day=day,
        source=SOURCE,
        taken=len(refreshed.taken),
        kept=sum(bool(one.old) for one in refreshed.kept),
        untouched=refreshed.untouched,
        old=book.name,
        sha256=book.sha256,
    )
    before = read_provenance(path.with_suffix(".toml"))
    earlier = [source for source in before.sources if source.name != SOURCE] if before else []
    return book_files(name, refreshed.lines, day, method, [_source(refreshed, catalogue, day), *earlier])


def _source(refreshed: Refreshed, catalogue: Mapping[str, Sequence[Sku]], day: datetime.date) -> Source:
    services = ", ".join(catalogue)
    return Source(
        name=SOURCE,
        what=f"{len({one.item for one in refreshed.taken})} items of {services}",
        date=day.isoformat(),
        method="ListSkus of the Cloud Billing API v1, matched by policies/prices/patterns.csv",
        licence="facts",
        file=f"the {sum(map(len, catalogue.values()))} SKUs as they were read, one a line, sorted",
        sha256=_digest(catalogue),
    )


def _digest(catalogue: Mapping[str, Sequence[Sku]]) -> str:
    """The same whatever the order of the SKUs."""
    lines = sorted(f"{service}\t{sku!r}" for service, skus in catalogue.items() for sku in skus)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "backslashreplace")).hexdigest()
