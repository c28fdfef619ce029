"""`python -m tests.google_cloud.demo`: what `make demo` ends with, an audit of a small invented project.

The demo world is served on this machine with its clock stopped, the real command looks at it by Google's own clients,
and the steps that would stop the waste are shown. Nothing of it leaves the machine.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from policies.exit_codes import ExitCode
from tests.google_cloud.instants import rfc3339
from tests.google_cloud.server import served
from tests.google_cloud.world import load

WORLD: Final = Path(__file__).parent / "worlds" / "demo.json"
NOW: Final = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)
SPOTRAIL: Final = str(Path(sys.executable).with_name("spotrail"))


def main() -> int:
    """Run both commands; 0 where they found what is there to be found."""
    world = load(WORLD, now=NOW)
    with served(world) as endpoint, tempfile.TemporaryDirectory() as folder:
        plan = str(Path(folder) / "remedies.json")
        look = ["audit", "--project", world.project, "--endpoint", endpoint, "--now", rfc3339(NOW), "--plan", plan]
        found = subprocess.run([SPOTRAIL, *look, "--quiet"], check=False).returncode
        if found != ExitCode.VIOLATED:
            return found or 1
        shown = subprocess.run([SPOTRAIL, "audit", "--from", plan], check=False).returncode
    print("\nThis cloud was on your machine, and is gone. Of your own: spotrail audit --project my-project")
    return shown


if __name__ == "__main__":
    sys.exit(main())
