"""What the offline preview costs over a bare run of the same program: `python tests/bench/preview.py [-n RUNS]`.

Runs one stack alternately (a) through the SDK's own mocks in a child process and (b) through the offline preview,
and prints both medians and their ratio. Both start from nothing each time: a new interpreter, all imports.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from infra.engine.configuration import load_configuration
from infra.engine.project import Project, load_project

ROOT = Path(__file__).parents[2]

MOCKED = """
import asyncio, runpy, sys
import pulumi

class Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args):
        return "", args.inputs

    def call(self, args):
        return {}

loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
pulumi.runtime.set_all_config(pulumi.runtime.get_config_env(), pulumi.runtime.get_config_secret_keys_env())
pulumi.runtime.set_mocks(Mocks(), project=sys.argv[1], stack=sys.argv[2], preview=True)
loop.run_until_complete(
    pulumi.runtime.stack.run_pulumi_func(lambda: runpy.run_path(sys.argv[3], run_name="__main__") and None)
)
"""

PREVIEWED = """
import sys
from pathlib import Path
from infra.preview import preview

print(len(preview(sys.argv[1], Path(sys.argv[2])).resources))
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--runs", type=int, default=7, help="runs of each (default 7)")
    parser.add_argument("--project", type=Path, default=ROOT, help="folder of the Pulumi.yaml (default: spotrail's)")
    parser.add_argument("--stack", default="prod", help="stack to run (default prod)")
    options = parser.parse_args()
    project = load_project(options.project)
    mocked, previewed = [], []
    for _ in range(options.runs):
        mocked.append(_mocked(project, options.stack))
        seconds, resources = _previewed(project, options.stack)
        previewed.append(seconds)
    bare, ours = statistics.median(mocked), statistics.median(previewed)
    print(f"{project.name}/{options.stack}: {resources} resources, {options.runs} runs each, medians")
    print(f"  the SDK's mocks   {bare:6.2f} s   (fastest {min(mocked):.2f} s)")
    print(f"  offline preview   {ours:6.2f} s   (fastest {min(previewed):.2f} s)")
    print(f"  ratio             {ours / bare:6.2f}")


def _mocked(project: Project, stack: str) -> float:
    configuration = load_configuration(project, stack)
    environment = {
        **os.environ,
        "PULUMI_CONFIG": json.dumps(dict(configuration.values)),
        "PULUMI_CONFIG_SECRET_KEYS": json.dumps(sorted(configuration.secrets)),
    }
    command = [sys.executable, "-c", MOCKED, project.name, stack, project.program]
    return _timed(command, project.folder, environment)[0]


def _previewed(project: Project, stack: str) -> tuple[float, int]:
    seconds, said = _timed([sys.executable, "-c", PREVIEWED, stack, str(project.root)], ROOT, dict(os.environ))
    return seconds, int(said)


def _timed(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[float, str]:
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, done.stdout


if __name__ == "__main__":
    main()
