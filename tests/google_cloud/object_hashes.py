"""The checksums that a client says its bytes have, and whether they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from tests.google_cloud.errors import Refusal
from tests.google_cloud.http_server import Request
from tests.google_cloud.object_store import Checksums


@final
@dataclass(frozen=True, kw_only=True)
class Claims:
    """What was said; None of what was not."""

    crc32c: str | None = None
    md5: str | None = None

    @staticmethod
    def of_headers(request: Request) -> Claims:
        """`X-Goog-Hash: crc32c=...,md5=...` and `Content-MD5`."""
        said = dict(each.strip().partition("=")[::2] for each in request.header("x-goog-hash").split(",") if each)
        return Claims(crc32c=said.get("crc32c"), md5=said.get("md5") or request.header("content-md5") or None)

    def also(self, other: Claims) -> Claims:
        """Both; the other's where both say something."""
        return Claims(crc32c=other.crc32c or self.crc32c, md5=other.md5 or self.md5)

    def check(self, sums: Checksums) -> None:
        """Raises Refusal (400) for one that is wrong."""
        for title, said, found in (("CRC32C", self.crc32c, sums.crc32c), ("MD5 hash", self.md5, sums.md5)):
            if said is not None and said != found:
                message = f'Provided {title} "{said}" doesn\'t match calculated {title} "{found}".'
                raise Refusal(400, "invalid", message)


def claims_of(fields: Mapping[str, Any]) -> Claims:
    """Those in the metadata of an upload."""
    return Claims(crc32c=fields.get("crc32c"), md5=fields.get("md5Hash"))
