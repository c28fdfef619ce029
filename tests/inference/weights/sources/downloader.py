"""A download in a process of its own: `python -m tests.inference.weights.sources.downloader CACHE PART WORKERS`.

It says `waiting` when it waits for another, and at its end one line of JSON: what was fetched, the folder, and how
often it was told that it waits.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inference.weights.sources.progress import DownloadProgress, Stage
from inference.weights.sources.transfer import Limits
from tests.inference.weights.sources.stored import PATIENT, download


def main(cache: str, part: str, workers: str) -> None:
    """Download, and say what came."""

    waits = 0

    def told(progress: DownloadProgress) -> None:
        nonlocal waits
        if progress.stage is Stage.WAITING:
            waits += 1
            if waits == 1:
                print(progress, flush=True)

    limits = Limits(part_bytes=int(part), workers=int(workers), patience=PATIENT)
    got = download(Path(cache), limits=limits, progress=told)
    print(json.dumps({"fetched": got.fetched, "folder": str(got.folder), "waits": waits}))


if __name__ == "__main__":
    main(*sys.argv[1:])
