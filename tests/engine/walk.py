"""A stack's way under the official engine, from nothing to nothing, with what the CLI wrote on it."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Final, final

from infra.preview import Preview, preview
from policies.changes import Reading
from policies.readers.source import read_source
from tests.engine.stand import Stand, counted

NEW_OWNER: Final = "ml-platform"


@final
@dataclass(frozen=True, kw_only=True)
class Walk:
    """What was seen on the way."""

    stand: Stand
    """The stack."""
    offline: Preview = field(repr=False)
    """The offline preview of the same project."""
    planned: str = field(repr=False)
    """`pulumi preview --json` before anything was up."""
    created: dict[str, int]
    """What the first `pulumi up` did."""
    again: dict[str, int]
    """What a second one did."""
    still: str = field(repr=False)
    """`pulumi preview --json --show-sames` after that."""
    short: str = field(repr=False)
    """The same without `--show-sames`."""
    exported: str = field(repr=False)
    """`pulumi stack export` after that."""
    refreshed: dict[str, int]
    """What `pulumi refresh` found."""
    renamed: Preview = field(repr=False)
    """The offline preview with another owner."""
    update: str = field(repr=False)
    """`pulumi preview --json --show-sames` with that owner."""
    updated: dict[str, int]
    """What `pulumi up` with that owner did."""
    after: str = field(repr=False)
    """`pulumi stack export` after that."""
    refusal: str = field(repr=False)
    """What a plain `pulumi destroy` said, which removed nothing."""
    refused: str = field(repr=False)
    """`pulumi stack export` after that."""
    destroyed: dict[str, int]
    """What `pulumi destroy --exclude-protected` did."""
    left: str = field(repr=False)
    """`pulumi stack export` after that."""


def walk(stand: Stand) -> Walk:
    """Take `stand` from nothing to nothing but what is protected."""
    planned = written(stand)
    offline = preview(stand.name, stand.folder)
    created, again = stand.up(), stand.up()
    still, short, exported = written(stand, "--show-sames"), written(stand), stand.export()
    refreshed = stand.refresh()
    stand.settings({"owner": NEW_OWNER})
    update = written(stand, "--show-sames")
    renamed = preview(stand.name, stand.folder)
    updated, after = stand.up(), stand.export()
    refusal = stand.cli("destroy", "--yes", "--non-interactive")
    assert refusal.code != 0, refusal.said
    refused = stand.export()
    destroyed = counted(stand.stack.destroy(exclude_protected=True).summary.resource_changes)
    return Walk(
        stand=stand,
        offline=offline,
        planned=planned,
        created=created,
        again=again,
        still=still,
        short=short,
        exported=exported,
        refreshed=refreshed,
        renamed=renamed,
        update=update,
        updated=updated,
        after=after,
        refusal=refusal.said,
        refused=refused,
        destroyed=destroyed,
        left=stand.export(),
    )


def written(stand: Stand, *options: str) -> str:
    """The preview file of a preview that succeeds."""
    ended = stand.preview_file(*options)
    assert ended.code == 0, ended.said
    return ended.stdout


def reading(text: str, place: str) -> Reading:
    """A file of the CLI as `spotrail` reads it."""
    return read_source(place, io.BytesIO(text.encode()))
