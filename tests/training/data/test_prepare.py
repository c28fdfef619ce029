"""Preparation: the same bytes for the same text, whole or not at all, and no token lost on the way."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest

from tests.training.data.prepared import reading
from training.data.batches import Batch, BatchSource
from training.data.documents import DocumentSource
from training.data.jsonl import jsonl_file
from training.data.packing import PackingKind
from training.data.prepare import Recipe, prepare
from training.data.survey import hash_of, kept_for_validation
from training.errors import TrainingError
from training.model.tokenizer import load_tokenizer

SMALL = Recipe(vocab_size=400, sequence_length=64)
TEXTS = [text for _, text in sorted(topics.items())][:12]


def documents(texts: list[str], name: str = "texts") -> DocumentSource:
    return DocumentSource(name=name, size=sum(map(len, texts)), read=lambda: iter(texts))


def content_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def text_file_of(folder: Path, paragraphs: int = 3000) -> Path:
    path = folder / "book.txt"
    path.write_text("".join(f"Paragraph {number} says {number * 7919 % 1000}.\n\n" for number in range(paragraphs)))
    return path


def restored(folder: Path, *, packing: PackingKind) -> Counter[str]:
    """The documents of a folder, put together from the rows that training reads."""
    source = BatchSource(reading(folder, shuffle=False), 0, 1)
    tokenizer = load_tokenizer(source.tokenizer_path)
    found: Counter[str] = Counter()
    for number, get in ((source.validation_batches, source.validation), (rows_in(folder), source.batch)):
        pieces = [piece for index in range(number) for piece in pieces_of(get(index))]
        if packing is PackingKind.CONCAT_SPLIT:
            pieces = split_at_end([token for piece in pieces for token in piece], tokenizer.end)
        assert all(piece[-1] == tokenizer.end for piece in pieces)
        found.update(tokenizer.decode(piece[:-1]) for piece in pieces)
    return found


def pieces_of(batch: Batch) -> list[list[int]]:
    """The segments of a batch of one row."""
    tokens, segments = batch.tokens[0], batch.segments[0]
    return [tokens[segments == segment].tolist() for segment in range(1, int(segments.max()) + 1)]


def split_at_end(ids: list[int], end: int) -> list[list[int]]:
    documents: list[list[int]] = [[]]
    for token in ids:
        documents[-1].append(token)
        if token == end:
            documents.append([])
    assert not documents.pop()
    return documents


def rows_in(folder: Path) -> int:
    rows: int = json.loads((folder / "MANIFEST.json").read_bytes())["train"]["rows"]
    return rows


@pytest.mark.parametrize("packing", PackingKind)
def test_every_document_comes_back_once(tmp_path: Path, packing: PackingKind) -> None:
    texts = [f"document {number} " * (number % 7 + 1) for number in range(200)] + ["the same", "the same", ""]
    recipe = Recipe(vocab_size=300, sequence_length=255, packing=packing, validation=0.2, shard_bytes=4096)
    done = prepare([documents(texts)], tmp_path / "out", recipe=recipe)
    assert restored(tmp_path / "out", packing=packing) == Counter(text for text in texts if text)
    assert done.manifest.train.documents + done.manifest.validation.documents == 202
    assert 20 < done.manifest.validation.documents < 60
    assert len(done.manifest.train.shards) > 1


def test_the_same_text_gives_the_same_bytes_wherever_it_is(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        prepare([text_file_of(tmp_path / name)], tmp_path / name / "out", recipe=SMALL)
    assert content_of(tmp_path / "one" / "out") == content_of(tmp_path / "two" / "out")


def test_again_it_is_left_as_it_is_and_other_data_is_not_replaced_unasked(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = prepare([documents(TEXTS)], out, recipe=SMALL)
    before = content_of(out)
    again = prepare([documents(TEXTS)], out, recipe=SMALL)
    assert (first.unchanged, again.unchanged) == (False, True)
    assert again.manifest == first.manifest
    for sources, recipe in (([documents(TEXTS[1:])], SMALL), ([documents(TEXTS)], Recipe(sequence_length=32))):
        with pytest.raises(TrainingError, match="out: holds other prepared data; name another folder, or --replace it"):
            prepare(sources, out, recipe=recipe)
    assert content_of(out) == before
    other = prepare([documents(TEXTS[1:])], out, recipe=SMALL, replace=True)
    assert not other.unchanged
    assert content_of(out) != before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_damaged_data_is_made_anew(tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare([documents(TEXTS)], out, recipe=SMALL)
    before = content_of(out)
    (out / "train-00000.tokens").write_bytes(b"")
    assert not prepare([documents(TEXTS)], out, recipe=SMALL).unchanged
    assert content_of(out) == before
    (out / "MANIFEST.json").write_bytes(b"{")
    with pytest.raises(TrainingError, match=r"MANIFEST\.json: is damaged.*prepare again, with --replace"):
        prepare([documents(TEXTS)], out, recipe=SMALL)
    prepare([documents(TEXTS)], out, recipe=SMALL, replace=True)
    assert content_of(out) == before


def test_a_place_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(TrainingError, match="holds other files; name a folder that is empty or not there yet"):
        prepare([documents(TEXTS)], tmp_path, recipe=SMALL, replace=True)
    with pytest.raises(TrainingError, match=r"note\.txt: is no folder; name another"):
        prepare([documents(TEXTS)], tmp_path / "note.txt", recipe=SMALL)
    with pytest.raises(TrainingError, match="cannot be read: File name too long"):
        prepare([documents(TEXTS)], tmp_path / ("x" * 300), recipe=SMALL)
    with pytest.raises(TrainingError, match="data is prepared on a disk"):
        prepare([documents(TEXTS)], Path("gs://bucket/data"), recipe=SMALL)
    (tmp_path / "empty").mkdir()
    prepare([documents(TEXTS)], tmp_path / "empty", recipe=SMALL)
    assert (tmp_path / "note.txt").read_text() == "mine"


SLOW = """
import sys, time
from pathlib import Path
from training.data import prepare as module
place, phase = Path(sys.argv[1]), sys.argv[2]
def wait(said, done, total):
    if said == phase and done == total:
        print("there", flush=True)
        time.sleep(60)
recipe = module.Recipe(vocab_size=400, sequence_length=64)
module.prepare([place / "book.txt"], place / "out", recipe=recipe, progress=wait)
"""


@pytest.mark.parametrize("phase", ["tokenizing", "packing"])
def test_a_run_that_is_killed_leaves_nothing_that_looks_complete(tmp_path: Path, phase: str) -> None:
    book = text_file_of(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, str(tmp_path), phase], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        assert not (tmp_path / "out").exists()
        # While it lives nobody else writes there.
        with pytest.raises(TrainingError, match="another process is preparing data there"):
            prepare([book], tmp_path / "out", recipe=SMALL)
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "out").exists()
    with pytest.raises(TrainingError, match="there is no such folder"):
        BatchSource(reading(tmp_path / "out"), 0, 1)
    assert not prepare([book], tmp_path / "out", recipe=SMALL).unchanged
    assert sorted(path.name for path in tmp_path.iterdir()) == ["book.txt", "out"]
    prepare([book], tmp_path / "straight", recipe=SMALL)
    assert content_of(tmp_path / "out") == content_of(tmp_path / "straight")


def test_an_error_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    def stops(phase: str, done: int, total: int) -> None:
        if phase == "packing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare([documents(TEXTS)], tmp_path / "out", recipe=SMALL, progress=stops)
    assert not list(tmp_path.iterdir())


def test_a_place_under_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match="out: Not a directory; name a folder that can be written"):
        prepare([documents(TEXTS)], tmp_path / "file" / "out", recipe=SMALL)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "there is no text in texts: every document is empty"),
        (["", ""], "there is no text in texts: every document is empty"),
        (
            ["few words"],
            "too little text: 9 bytes give at most 10 tokens to train on, .* row takes 65 .* 195 bytes or more",
        ),
        (["some text " * 30], "the text is one document, or copies of one, .* --validation 0"),
        (["some text " * 30] * 5, "the text is one document, or copies of one, .* --validation 0"),
        (["ab" * 30, "ba" * 30], r"too little text: 120 bytes give \d+ tokens to train on, and a row takes 65"),
    ],
)
def test_too_little_text_is_told_with_how_much_is_needed(tmp_path: Path, texts: list[str], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        prepare([documents(texts)], tmp_path / "out", recipe=SMALL)
    assert not list(tmp_path.iterdir())


def test_one_document_can_be_trained_on_alone(tmp_path: Path) -> None:
    recipe = Recipe(vocab_size=400, sequence_length=16, validation=0)
    manifest = prepare([documents(["some text " * 30])], tmp_path / "out", recipe=recipe).manifest
    assert manifest.validation.rows == 0
    assert BatchSource(reading(tmp_path / "out"), 0, 1).validation_batches == 0


def test_nothing_to_prepare_is_told(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="there is nothing to prepare; name text files"):
        prepare([], tmp_path / "out")
    with pytest.raises(TrainingError, match="none: there is no such file"):
        prepare([tmp_path / "none"], tmp_path / "out")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("sequence_length", 0, "--sequence-length is 0; it must be 1 to 1048576"),
        ("validation", 0.9, "--validation is 0.9; it is a fraction of the documents, from 0 to 0.5"),
        ("validation", -1, "--validation is -1"),
        ("vocab_size", 200, "--vocab-size is 200; bytes and reserved tokens alone are 261"),
    ],
)
def test_numbers_out_of_range_are_refused(field: str, value: float, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        Recipe(**{field: value})


def jsonl_with_bad_lines(folder: Path) -> Path:
    path = folder / "data.jsonl"
    good = [json.dumps({"text": text}) for text in TEXTS]
    path.write_text("\n".join([*good[:3], '{"text": 1}', *good[3:], "[]", "{", '{"txt": ""}']))
    return path


def test_strict_stops_at_a_bad_line_and_lenient_counts_it(tmp_path: Path) -> None:
    source = jsonl_file(jsonl_with_bad_lines(tmp_path), "text")
    with pytest.raises(TrainingError, match=r"data\.jsonl:4: the field \"text\" is no string .* --lenient"):
        prepare([source], tmp_path / "out", recipe=SMALL)
    done = prepare([source], tmp_path / "out", recipe=SMALL, lenient=True)
    (entry,) = done.manifest.sources
    assert (entry.documents, entry.skipped) == (len(TEXTS), 4)
    assert [bad.number for bad in done.bad_lines] == [4, 14, 15, 16]


def test_a_file_that_changes_while_it_is_read_is_told(tmp_path: Path) -> None:
    book = text_file_of(tmp_path)

    def change(phase: str, done: int, total: int) -> None:
        if phase == "reading" and done > total * 0.9:
            book.write_text(book.read_text().replace("7", "8"))

    with pytest.raises(TrainingError, match=r"book\.txt was changed while it was read"):
        prepare([book], tmp_path / "out", recipe=SMALL, progress=change)
    assert not (tmp_path / "out").exists()


def test_a_given_tokenizer_is_used_and_goes_along(tmp_path: Path) -> None:
    prepare([documents(TEXTS)], tmp_path / "one", recipe=SMALL)
    tokenizer = tmp_path / "one" / "tokenizer.json"
    prepare([documents(TEXTS[:6], "others")], tmp_path / "two", recipe=SMALL, tokenizer=tokenizer)
    assert (tmp_path / "two" / "tokenizer.json").read_bytes() == tokenizer.read_bytes()
    source = BatchSource(reading(tmp_path / "one", tmp_path / "two"), 0, 4)
    assert source.vocab_size == 400
    assert source.batch(0).tokens.max() < 400


def test_progress_goes_from_nothing_to_all(tmp_path: Path) -> None:
    said: dict[str, list[tuple[int, int]]] = {}
    prepare(
        [documents(TEXTS)],
        tmp_path / "out",
        recipe=SMALL,
        progress=lambda phase, done, total: said.setdefault(phase, []).append((done, total)),
    )
    assert list(said) == ["reading", "training the tokenizer", "tokenizing", "packing"]
    for steps in said.values():
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
        assert all(done <= total for done, total in steps[:-1])


def test_a_document_stays_on_its_side_when_others_come() -> None:
    hashes = np.array([hash_of(f"document {number}".encode()) for number in range(2000)], np.uint64)
    kept = kept_for_validation(hashes, 0.1)
    assert kept.sum() == pytest.approx(200, abs=50)
    assert np.array_equal(kept_for_validation(hashes[:700], 0.1), kept[:700])
    # Few documents: one at least on either side, and a copy is where its like is.
    few = np.array([5, 9, 9, 7], np.uint64) << np.uint64(60)
    assert kept_for_validation(few, 0.001).tolist() == [True, False, False, False]
    assert kept_for_validation(few[1:], 1e-9).tolist() == [False, False, True]
    assert kept_for_validation(np.array([1, 2, 3], np.uint64), 0.5).tolist() == [True, True, False]
