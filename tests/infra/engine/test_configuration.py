"""Settings as the CLI hands them to a program: full names, everything text, JSON for what has parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.engine.configuration import ENCRYPTED_PLACEHOLDER, Configuration, load_configuration
from infra.engine.errors import ProjectError
from infra.engine.project import load_project
from policies.resources import SECRET


def load(folder: Path, stack: str, project: str = "") -> Configuration:
    """The configuration of the stack file `stack` in a project called `demo`."""
    (folder / "Pulumi.yaml").write_text(f"name: demo\nruntime: python\n{project}")
    (folder / "Pulumi.dev.yaml").write_text(stack, encoding="utf-8")
    (folder / "__main__.py").touch()
    return load_configuration(load_project(folder), "dev")


@pytest.mark.parametrize(
    ("setting", "name", "text"),
    [
        ("gcp:project: acme", "gcp:project", "acme"),
        ("size: 100", "demo:size", "100"),
        ("aws:config:region: us", "aws:region", "us"),
        ("share: 1.50", "demo:share", "1.5"),
        ("many: 1e3", "demo:many", "1000"),
        ("on: true", "demo:on", "true"),
        ("answer: yes", "demo:answer", "yes"),
        ("nothing:", "demo:nothing", ""),
        ("until: 2026-12-15", "demo:until", "2026-12-15T00:00:00Z"),
        ("name: Söhne", "demo:name", "Söhne"),
        ("list: [1, b, true, null, 1.0]", "demo:list", '[1,"b",true,null,1]'),
        ("deep: {b: {c: [0.5]}, a: Söhne}", "demo:deep", '{"a":"Söhne","b":{"c":[0.5]}}'),
        ("secure: {secure: 1}", "demo:secure", '{"secure":1}'),
    ],
)
def test_a_value_is_the_text_that_the_cli_makes_of_it(tmp_path: Path, setting: str, name: str, text: str) -> None:
    found = load(tmp_path, f"config:\n  {setting}\n")
    assert found == Configuration(values={name: text}, secrets=frozenset())


def test_what_is_encrypted_is_a_placeholder_and_a_secret(tmp_path: Path) -> None:
    text = "token: {secure: v1:abc}\n  demo:deep: {a: 1, list: [{secure: v1:def}]}\n  plain: {secure: x, b: 1}"
    found = load(tmp_path, f"config:\n  {text}\n")
    assert found.values["demo:token"] == ENCRYPTED_PLACEHOLDER
    assert json.loads(found.values["demo:deep"]) == {"a": 1, "list": [ENCRYPTED_PLACEHOLDER]}
    assert json.loads(found.values["demo:plain"]) == {"secure": "x", "b": 1}
    assert found.secrets == {"demo:token", "demo:deep"}
    assert found.shown() == {"demo:deep": SECRET, "demo:plain": found.values["demo:plain"], "demo:token": SECRET}


def test_settings_of_a_namespace(tmp_path: Path) -> None:
    found = load(tmp_path, "config: {gcp:zone: us-east5-b, gcp:project: acme, demo:gcp: x}")
    assert found.of("gcp") == {"zone": "us-east5-b", "project": "acme"}


def test_the_stack_file_wins_over_the_project(tmp_path: Path) -> None:
    project = (
        "config:\n  size: 10\n  demo:zone: {type: string, default: a}\n  gcp:project: {value: acme}\n  list: [1]\n"
    )
    found = load(tmp_path, "config: {size: 20}", project)
    assert found.values == {"demo:size": "20", "demo:zone": "a", "gcp:project": "acme", "demo:list": "[1]"}


@pytest.mark.parametrize("stack", ["", "# nothing\n", "config:\n", "encryptionsalt: v1:abc\n"])
def test_a_stack_may_have_no_settings(tmp_path: Path, stack: str) -> None:
    assert load(tmp_path, stack).values == {}


@pytest.mark.parametrize(
    ("stack", "project", "message"),
    [
        ("[1]", "", r"Pulumi\.dev\.yaml: must be a mapping with config"),
        ("config: [1]", "", r"Pulumi\.dev\.yaml: config is \[1\]; it must be a mapping of settings"),
        ("environment: [prod]", "", r"environment: settings from Pulumi ESC cannot be read offline"),
        ("config: {a: {b: .inf}}", "", r"demo:a holds a number that is infinite or none"),
        ("config: {a: 1e400}", "", r"demo:a holds a number that is infinite or none"),
        ("confg: {a: 1}", "", r'"confg" is not a key of a stack file\. Did you mean config\?'),
        ("config: {a: 1, demo:a: 2}", "", r'demo:a stands twice, once as "demo:a"; keep one of them'),
        ("config: {a:b:c:d: 1}", "", r'"a:b:c:d" is not the name of a setting; it is NAME or NAMESPACE:NAME'),
        ("config: {'': 1}", "", r'"" is not the name of a setting'),
        ("", "config: {n: {type: integer, default: x}}", r"Pulumi\.yaml: demo:n is 'x'; it must be of type integer"),
        (
            "",
            "config: {owner: {type: string}, zone: {}}",
            r"not set: demo:owner, demo:zone; Pulumi\.yaml declares no default for it\. "
            r"Set it: pulumi config set demo:owner \.\.\. --stack dev",
        ),
        ("config: {n: x}", "config: {n: {type: integer}}", r"demo:n is 'x'; it must be of type integer"),
        ("config: {n: 1}", "config: {n: {type: boolean}}", r"demo:n is 1; it must be of type boolean"),
        ("config: {n: {a: 1}}", "config: {n: {type: string}}", r"must be of type string"),
        ("config: {n: 1}", "config: {n: {type: array, items: {type: string}}}", r"must be of type array"),
        ("config: {n: [1]}", "config: {n: {type: object}}", r"must be of type object"),
        ("config: {n: 1}", "config: {n: {type: string, secret: true}}", r"demo:n must be encrypted"),
    ],
)
def test_what_is_refused(tmp_path: Path, stack: str, project: str, message: str) -> None:
    with pytest.raises(ProjectError, match=message):
        load(tmp_path, stack, project)


@pytest.mark.parametrize(
    ("value", "kind"),
    [("3", "integer"), ('"3"', "integer"), ("true", "boolean"), ("3", "string"), ("{a: 1}", "object")],
)
def test_what_fits_its_declared_type(tmp_path: Path, value: str, kind: str) -> None:
    assert load(tmp_path, f"config: {{n: {value}}}", f"config: {{n: {{type: {kind}}}}}").values
