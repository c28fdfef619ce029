"""Which `pulumi` the tests run: the decisions, and the build with a `go` that is a script."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.engine.command import (
    MODULE,
    OLDEST,
    BuildError,
    Found,
    build,
    cache_of,
    decide,
    look,
    pinned,
    read_version,
    shown,
    supported,
)

ROOT = Path(__file__).parents[2]
PATH, CACHED, GO = Path("/opt/bin/pulumi"), Path("/home/ada/.cache/spotrail/pulumi"), Path("/opt/go/bin/go")

FAKE_GO = """#!/bin/sh
# `go build ... -o PART PACKAGE`: takes its time over half a file, then makes a program that says its version.
while [ "$1" != "-o" ]; do [ "$1" = "-ldflags" ] && stamp="$2"; shift; done
echo build >> {log}
printf '#!/bin/sh\\n' > "$2"; chmod +x "$2"
sleep {seconds}
{fail}
echo "echo ${{stamp##*=}}" >> "$2"
"""


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("v3.274.1\n", (3, 274, 1)),
        ("3.272.0", (3, 272, 0)),
        ("v3.275.0-alpha.1+abc", (3, 275, 0)),
        ("", None),
        ("dev", None),
        ("pulumi v3.274.1", None),
    ],
)
def test_a_version_is_read_as_the_cli_prints_it(printed: str, version: tuple[int, int, int] | None) -> None:
    assert read_version(printed) == version


@pytest.mark.parametrize(
    ("version", "good"),
    [((3, 272, 0), True), ((3, 999, 0), True), ((3, 271, 9), False), ((4, 0, 0), False), ((2, 300, 0), False)],
)
def test_the_supported_versions_are_those_of_the_sdk(version: tuple[int, int, int], good: bool) -> None:
    assert supported(version) is good


def test_the_oldest_version_is_that_of_the_sdk_in_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"pulumi>={OLDEST[0]}.{OLDEST[1]},<{OLDEST[0] + 1}" in project["dependencies"]


@pytest.mark.parametrize(
    ("found", "program"),
    [
        (Found(on_path=PATH, version=(3, 274, 1), cached=CACHED, go=GO), PATH),
        (Found(on_path=PATH, version=(3, 100, 0), cached=CACHED, go=GO), CACHED),
        (Found(on_path=PATH, version=None, cached=CACHED), CACHED),
        (Found(cached=CACHED), CACHED),
    ],
)
def test_the_path_comes_first_and_the_cache_second(found: Found, program: Path) -> None:
    decision = decide(found)
    assert (decision.program, decision.reason) == (program, "")


@pytest.mark.parametrize(
    ("found", "buildable", "words"),
    [
        (Found(go=GO), True, "none on the PATH; `make engine` builds one"),
        (Found(on_path=PATH, version=(3, 100, 0), go=GO), True, f"{PATH} is 3.100.0; `make engine`"),
        (Found(on_path=PATH, go=GO), True, f"{PATH} says no version; `make engine`"),
        (Found(), False, "none on the PATH, and no go on the PATH to build it"),
    ],
)
def test_where_there_is_none_one_line_says_why(found: Found, buildable: bool, words: str) -> None:
    decision = decide(found)
    assert (decision.program, decision.buildable) == (None, buildable)
    assert decision.reason.startswith(f"no pulumi of a supported version ({shown(OLDEST)} or later)")
    assert words in decision.reason
    assert "\n" not in decision.reason


def test_the_cache_is_the_users_and_knows_the_version() -> None:
    assert cache_of({"HOME": "/home/ada"}, "3.1.2") == Path("/home/ada/.cache/spotrail/pulumi-3.1.2/pulumi")
    assert cache_of({"HOME": "/home/ada", "XDG_CACHE_HOME": "/c"}, "3.1.2") == Path("/c/spotrail/pulumi-3.1.2/pulumi")


def test_what_is_on_the_path_is_asked_for_its_version(tmp_path: Path) -> None:
    script(tmp_path / "pulumi", "#!/bin/sh\necho v3.280.0\n")
    found = look({"PATH": f"{tmp_path}:/bin:/usr/bin", "HOME": str(tmp_path)})
    assert (found.on_path, found.version, found.cached) == (tmp_path / "pulumi", (3, 280, 0), None)


def test_a_pulumi_that_fails_says_no_version(tmp_path: Path) -> None:
    script(tmp_path / "pulumi", "#!/bin/sh\necho v3.280.0\nexit 3\n")
    assert look({"PATH": str(tmp_path), "HOME": str(tmp_path)}).version is None


def test_the_go_module_pins_one_supported_version() -> None:
    assert supported(read_version(pinned()))


def test_a_build_is_taken_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "cache" / "pulumi"
    build(MODULE, target, fake_go(tmp_path), environment(tmp_path))
    said = subprocess.run([target], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == f"v{pinned()}"
    assert {file.name for file in target.parent.iterdir()} == {"pulumi", "lock"}


def test_a_build_that_fails_leaves_nothing_to_be_taken_and_says_why(tmp_path: Path) -> None:
    target = tmp_path / "cache" / "pulumi"
    go = fake_go(tmp_path, fail="echo first >&2; echo no such host >&2; exit 1")
    with pytest.raises(BuildError, match=r"go build of Pulumi's CLI [0-9.]+ failed: no such host$"):
        build(MODULE, target, go, environment(tmp_path))
    assert not target.exists()


def test_a_build_of_another_version_is_not_taken(tmp_path: Path) -> None:
    target = tmp_path / "cache" / "pulumi"
    with pytest.raises(BuildError, match="does not say that it is"):
        build(MODULE, target, fake_go(tmp_path, fail="stamp=v3.1.0"), environment(tmp_path))
    assert not target.exists()


def test_what_a_killed_build_left_is_neither_taken_nor_kept(tmp_path: Path) -> None:
    cache = tmp_path / "home" / ".cache" / "spotrail" / f"pulumi-{pinned()}"
    cache.mkdir(parents=True)
    half = script(cache / "pulumi.4711.part", "#!/bin/sh\n")
    assert look(environment(tmp_path)).cached is None
    build(MODULE, cache / "pulumi", fake_go(tmp_path), environment(tmp_path))
    assert not half.exists()
    assert look(environment(tmp_path)).cached == cache / "pulumi"


def test_two_at_once_build_once(tmp_path: Path) -> None:
    fake_go(tmp_path, seconds=0.5)
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.engine.command"],
            cwd=ROOT,
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(2)
    ]
    printed = [process.communicate(timeout=60)[0].strip() for process in both]
    assert printed == [str(cache_of(environment(tmp_path), pinned()))] * 2
    assert (tmp_path / "builds").read_text().splitlines() == ["build"]


def test_without_pulumi_and_go_the_command_ends_with_one_line(tmp_path: Path) -> None:
    bare = {**environment(tmp_path), "PATH": str(tmp_path / "nothing")}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.engine.command"], cwd=ROOT, env=bare, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("no pulumi of a supported version")
    assert ended.stderr.count("\n") == 1


def environment(tmp_path: Path) -> dict[str, str]:
    """A machine whose only `go` is the script, and whose cache is the test's."""
    return {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "LANG": os.environ.get("LANG", "C"),
    }


def fake_go(tmp_path: Path, *, seconds: float = 0.0, fail: str = "") -> Path:
    text = FAKE_GO.format(log=tmp_path / "builds", seconds=seconds, fail=fail)
    return script(tmp_path / "bin" / "go", text)


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
