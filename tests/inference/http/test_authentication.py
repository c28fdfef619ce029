"""Who is let in, and which key files are."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.errors import ServingError
from inference.http.authentication import Keys, read_keys

ALICE = "alice-0123456789abcdef"
OTHER = "0123456789abcdef0123"


def written(folder: Path, text: str) -> Path:
    file = folder / "keys"
    file.write_text(text)
    return file


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return read_keys(written(tmp_path, f"# of the lab\n\nalice {ALICE}\n  {OTHER}\n"))


@pytest.mark.parametrize(
    ("header", "tenant"),
    [
        (f"Bearer {ALICE}", "alice"),
        (f"bearer  {ALICE} ", "alice"),  # the scheme in any case, as RFC 9110 has it
        (f"Bearer {ALICE}x", None),
        (f"Bearer {ALICE[:-1]}", None),
        (f"Basic {ALICE}", None),
        (ALICE, None),
        ("Bearer ", None),
        ("", None),
        (None, None),
        ("Bearer alice", None),
        (f"Bearer {ALICE} {ALICE}", None),
        ("Bearer \u00e9", None),
    ],
)
def test_who_is_let_in(keys: Keys, header: str | None, tenant: str | None) -> None:
    assert keys.tenant(header) == tenant


def test_a_key_without_a_name_is_a_tenant_of_its_own(keys: Keys) -> None:
    tenant = keys.tenant(f"Bearer {OTHER}")
    # sha256 of "0123456789abcdef0123", by sha256sum
    assert tenant == "key-1bd8fd472970"


def test_without_keys_everybody_is() -> None:
    assert Keys().tenant(None) == Keys().tenant("Bearer anything") == ""


def test_a_key_is_not_kept(keys: Keys) -> None:
    assert ALICE not in repr(keys)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", r"has no key, and nobody could be let in"),
        ("# nothing\n", r"has no key"),
        ("short\n", r"keys:1: the key has 5 characters; it has at least 16"),
        (f"\nalice {ALICE} more\n", r"keys:2: has 3 words; a line is KEY or TENANT KEY"),
        (f"a/b {ALICE}\n", r"keys:1: the tenant, the first of the two words, is no name"),
        (f"{ALICE}+/= name-of-a-long-tenant\n", r"keys:1: the tenant, the first of the two words, is no name"),
        (f"alice {ALICE}\0\n", r"keys:1: the key has a control character"),
        (f"alice {ALICE}\nbob {ALICE}\n", r"has a key twice"),
        (f"alice {ALICE}\nalice {OTHER}\n", r"has a tenant twice"),
        (f"alice {ALICE}é\n", r"not ASCII"),
    ],
)
def test_which_files_are_refused(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(ServingError, match=match) as refused:
        read_keys(written(tmp_path, text))
    assert ALICE not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ServingError, match=r"nothing: the API keys cannot be read: No such file"):
        read_keys(tmp_path / "nothing")
