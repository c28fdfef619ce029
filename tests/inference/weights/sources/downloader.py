"""A download in a process of its own: `python -m tests.inference.weights.sources.downloader CACHE PART WORKERS`.

It says `waiting` when it waits for another, and at its end one line of JSON: what was fetched, and the folder.
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

    def told(progress: DownloadProgress) -> None:
        if progress.stage is Stage.WAITING:
            print(progress, flush=True)

    limits = Limits(part_bytes=int(part), workers=int(workers), patience=PATIENT)
    got = download(Path(cache), limits=limits, progress=told)
    print(json.dumps({"fetched": got.fetched, "folder": str(got.folder)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
