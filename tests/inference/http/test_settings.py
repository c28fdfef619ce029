"""The command line of the server: what it means, and what it says of a mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inference.errors import ServingError
from inference.settings import GIB, MIB, Settings, bytes_of, parse


@pytest.mark.parametrize("devices", [[], ["--devices", "all"]])
def test_the_least_command(devices: list[str]) -> None:
    assert parse(["--weights", "./export", *devices]) == Settings(weights="./export")


def test_every_option() -> None:
    line = (
        "--weights gs://b/m --source download --weights-cache /c --verify --dtype bfloat16 --model-name m "
        "--compile-cache /x --host 0.0.0.0 --port 0 --devices 4 --slots 32 --context 1048576 --grid 128 --queue 5 "
        "--prefill-tokens 1024 --cache-memory 0 --max-body 1.5MiB --api-key-file k --drain-timeout 2.5 "
        "--keep-alive 1 --stall-timeout 2 --heartbeat-timeout 3 --access-log --allowed-origins https://a.example,*"
    )
    assert parse(line.split()) == Settings(
        weights="gs://b/m",
        source="download",
        weights_cache=Path("/c"),
        verify=True,
        dtype="bfloat16",
        model_name="m",
        compile_cache=Path("/x"),
        host="0.0.0.0",
        port=0,
        devices=4,
        slots=32,
        context=1 << 20,
        grid=128,
        queue=5,
        prefill_tokens=1024,
        cache_memory=0,
        most_body=3 * MIB // 2,
        api_key_file=Path("k"),
        drain_timeout=2.5,
        keep_alive=1.0,
        stall_timeout=2.0,
        heartbeat_timeout=3.0,
        access_log=True,
        allowed_origins=("https://a.example", "*"),
    )


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("", r"--weights is missing"),
        ("--weight m", r"--weight is no option; did you mean --weights\?"),
        ("--weights m --slot 3", r"--slot is no option; did you mean --slots\?"),
        ("--weights m --drain_timeout=3", r"--drain_timeout is no option; did you mean --drain-timeout\?"),
        ("--weights m model", r"'model' is not expected"),
        ("--weights m --source downlod", r"invalid choice: 'downlod'.*did you mean download\?"),
        ("--weights m --port 70000", r"--port is 70000; it is 0 to 65535"),
        ("--weights m --port http", r"argument --port: invalid int value: 'http'"),
        ("--weights m --slots 0", r"--slots is 0; it is 1 to 65536"),
        ("--weights m --devices 0", r"--devices is 0; it is 1 to 4096"),
        ("--weights m --devices -1", r"--devices is -1; it is 1 to 4096"),
        ("--weights m --devices every", r"argument --devices: 'every' is no number of devices; give one, or all"),
        ("--weights m --devices 0,1", r"argument --devices: '0,1' is no number of devices; give one, or all"),
        ("--weights m --grid 100", r"--grid is 100; it is a power of two"),
        ("--weights m --grid 32", r"--grid is 32; it is 64 to"),
        ("--weights m --prefill-tokens 128", r"--prefill-tokens is 128; it is 256 to"),
        ("--weights m --context 1", r"--context is 1; it is 2 to"),
        ("--weights m --cache-memory lots", r"'lots' is no size; give bytes, or a number with KiB"),
        ("--weights m --cache-memory 4GB", r"'4GB' is no size"),
        ("--weights m --cache-memory \u0661GiB", r"'\u0661GiB' is no size"),
        (f"--weights m --cache-memory {'9' * 400}", r"'9+' is no size"),
        (f"--weights m --cache-memory {'9' * 20}TiB", r"--cache-memory is .*; it is 0 to"),
        ("--weights m --drain-timeout soon", r"argument --drain-timeout: 'soon' is no number of seconds"),
        ("--weights m --drain-timeout nan", r"argument --drain-timeout: 'nan' is no number of seconds"),
        ("--weights m --drain-timeout -1", r"--drain-timeout is -1; it is 0 to 86400"),
        ("--weights m --model-name a\u00a0b", r"--model-name is .*without a space"),
        ("--weights m --max-body 1", r"--max-body is 1; it is 1024 to 1073741824$"),
    ],
)
def test_what_is_refused(line: str, match: str) -> None:
    with pytest.raises(ServingError, match=match):
        parse(line.split(" ") if line else [])


@pytest.mark.parametrize(
    ("said", "origins"),
    [
        ("https://a.example", ("https://a.example",)),
        ("http://localhost:3000,http://[::1]:3000", ("http://localhost:3000", "http://[::1]:3000")),
        ('["*"]', ("*",)),
        ('["https://a.example", "https://b.example:8443"]', ("https://a.example", "https://b.example:8443")),
    ],
)
def test_origins(said: str, origins: tuple[str, ...]) -> None:
    assert parse(["--weights", "m", "--allowed-origins", said]).allowed_origins == origins


@pytest.mark.parametrize(
    "said", ["", "a.example", "https://a.example/", "https://A.example", '["*"', "[]", "[1]", "null"]
)
def test_what_is_no_origin_would_never_match(said: str) -> None:
    with pytest.raises(
        ServingError, match=r"argument --allowed-origins: .* is no (list of origins|origin: SCHEME://HOST)"
    ):
        parse(["--weights", "m", "--allowed-origins", said])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("1048576", MIB),
        ("512MiB", 512 * MIB),
        ("4 GiB", 4 * GIB),
        ("1.5gib", 3 * GIB // 2),
        ("9007199254740993", 2**53 + 1),
        ("2TiB", 2048 * GIB),
    ],
)
def test_sizes(text: str, count: int) -> None:
    assert bytes_of(text) == count


@pytest.mark.parametrize(
    ("weights", "name"),
    [("./export", "export"), ("gs://bucket/llama/v1/", "v1"), ("export", "export"), ("/", "model")],
)
def test_a_model_is_called_by_its_folder(weights: str, name: str) -> None:
    assert Settings(weights=weights).served_name == name
    assert Settings(weights=weights, model_name="m").served_name == "m"


@pytest.mark.parametrize(
    ("said", "limit"),
    [({}, 4 * MIB), ({"context": 1 << 20}, 16 * MIB), ({"context": 1 << 20, "most_body": 5000}, 5000)],
)
def test_a_body_has_room_for_the_context(said: dict[str, Any], limit: int) -> None:
    assert Settings(weights="m", **said).body_limit == limit


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    for option in ("--weights", "--drain-timeout", "--api-key-file", "exit codes", "--max-body"):
        assert option in shown


@pytest.mark.parametrize(
    ("option", "match"),
    [
        ("--host", "--host is empty; name an address"),
        ("--compile-cache", "argument --compile-cache: is empty; name a file or folder"),
        ("--weights-cache", "argument --weights-cache: is empty"),
        ("--api-key-file", "argument --api-key-file: is empty"),
    ],
)
def test_a_variable_that_is_not_set_is_no_value(option: str, match: str) -> None:
    with pytest.raises(ServingError, match=match):
        parse(["--weights", "m", option, ""])
