"""What is saved comes back bit for bit, from and to any mesh."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorstore as ts
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.training.checkpoint.trees import assert_same, awkward_tree, bits_of, small_tree
from training.checkpoint import grid
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.discovery import Found, find_newest_valid
from training.checkpoint.errors import CheckpointError, ResumeRefusedError, SaveFailedError
from training.checkpoint.leaves import DTYPES, LeafSpec
from training.checkpoint.restoring import restore
from training.checkpoint.staging import planned
from training.checkpoint.writing import Hosts
from training.checkpoint.zarr_arrays import metadata


def saved(root: Path, tree: Any, meta: dict[str, Any] | None = None) -> Found:
    with Checkpointer(root, run="r") as checkpointer:
        checkpointer.save(1, tree, meta or {})
    found = find_newest_valid(root, "r")
    assert found is not None
    return found


def test_every_kind_of_leaf_comes_back_bit_for_bit(tmp_path: Path) -> None:
    tree = awkward_tree()
    meta = {"data": {"next_step": 2**60}, "note": "ü"}
    found = saved(tmp_path, tree, meta)
    back, said = restore(found, tree)
    assert_same(back, tree)
    assert said == meta
    assert isinstance(back["wide"], np.ndarray)
    assert isinstance(back["one"], jax.Array)
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)
    assert_same(restore(found, shapes)[0]["keys"], tree["keys"])


def test_numpy_of_the_other_endianness_and_order_is_the_same_values(tmp_path: Path) -> None:
    values = np.asfortranarray(np.arange(6, dtype=">f4").reshape(2, 3))
    back, _ = restore(saved(tmp_path, {"x": values}), {"x": np.zeros((2, 3), np.float32)})
    assert back["x"].dtype == np.float32
    assert np.array_equal(back["x"], values)


def test_other_readers_of_zarr_read_the_arrays(tmp_path: Path) -> None:
    tree = awkward_tree()
    saved(tmp_path, tree)
    parts = json.loads((tmp_path / "00000001-1/PART-0.json").read_text())["leaves"]
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    assert [part["leaf"] for part in parts] == [jax.tree_util.keystr(path) for path, _ in leaves]
    for part, (_, leaf) in zip(parts, leaves, strict=True):
        place = {"driver": "file", "path": str(tmp_path / "00000001-1" / part["folder"])}
        values = ts.open({"driver": "zarr3", "kvstore": place}).result().read().result()
        assert values.tobytes() == bits_of(leaf)[2]
        assert values.shape == tuple(part["shape"])


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("shape", [(), (5, 3), (0, 4)])
def test_tensorstore_would_have_written_the_same_bytes(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(np.dtype(dtype))
    saved(tmp_path / "ours", {"x": values})
    array = ts.open(
        {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": str(tmp_path / "theirs")},
            "metadata": metadata(LeafSpec(path="x", shape=shape, dtype=dtype), grid.chunk_shape(shape, 16)),
            "store_data_equal_to_fill_value": True,
        },
        create=True,
    ).result()
    array.write(values).result()
    ours = tmp_path / "ours/00000001-1/host-0/00000.x"
    chunks = {path.name: path.read_bytes() for path in ours.iterdir() if path.name != "zarr.json"}
    assert chunks == {path.name: path.read_bytes() for path in (tmp_path / "theirs").iterdir() if path.name[0] == "c"}
    theirs = json.loads((tmp_path / "theirs/zarr.json").read_text())
    mine = json.loads((ours / "zarr.json").read_text())
    assert {**mine, "fill_value": None} == {**theirs, "fill_value": None}


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Chunks of 300 bytes at the most."""
    monkeypatch.setattr(grid, "CHUNK_BYTES", 300)
    planned.cache_clear()
    yield
    planned.cache_clear()


MESHES = {"8": (8, 1), "4x2": (4, 2), "2x2": (2, 2), "1x4": (1, 4), "1": (1, 1)}
SPECS = {"rows": PartitionSpec("a"), "columns": PartitionSpec(None, "b"), "both": PartitionSpec("b", "a")}


def sharding(mesh: str, spec: str) -> NamedSharding:
    rows, columns = MESHES[mesh]
    devices = np.array(jax.devices()[: rows * columns]).reshape(rows, columns)
    return NamedSharding(Mesh(devices, ("a", "b")), SPECS[spec])


@pytest.mark.parametrize("source", ["8", "4x2", "1"])
@pytest.mark.usefixtures("small_chunks")
def test_any_mesh_reads_what_any_mesh_wrote(source: str, tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 2**32, (16, 24), np.uint32).view(np.float32)
    for spec in SPECS:
        root = tmp_path / spec
        placed = jax.device_put(values, sharding(source, spec))
        found = saved(root, {"w": placed})
        assert len(list((root / "00000001-1/host-0/00000.w").iterdir())) == 7
        for target in MESHES:
            for place in SPECS:
                wanted = sharding(target, place)
                like = {"w": jax.ShapeDtypeStruct(values.shape, values.dtype, sharding=wanted)}
                back = restore(found, like)[0]["w"]
                assert back.sharding == wanted
                assert bits_of(back) == bits_of(values)


def test_shardings_may_be_given_beside_the_shapes(tmp_path: Path) -> None:
    tree = {"w": jnp.arange(16.0).reshape(8, 2), "key": jax.random.key(3)}
    found = saved(tmp_path, tree)
    everywhere = NamedSharding(Mesh(np.array(jax.devices()), ("a",)), PartitionSpec())
    rows = NamedSharding(everywhere.mesh, PartitionSpec("a"))
    back, _ = restore(found, tree, {"w": rows, "key": everywhere})
    assert_same(back, tree)
    assert back["w"].sharding == rows
    assert len(back["key"].sharding.device_set) == 8
    assert restore(found, tree, everywhere)[0]["w"].sharding == everywhere
    with pytest.raises(CheckpointError, match=r"1 shardings were given for 2 arrays"):
        restore(found, tree, {"w": rows})


@pytest.mark.usefixtures("small_chunks")
def test_two_hosts_bring_a_part_each(tmp_path: Path) -> None:
    values = np.arange(15 * 8, dtype=np.float32).reshape(15, 8)
    tree = {
        "columns": jax.device_put(values, sharding("4x2", "columns")),
        "alone": jnp.arange(3.0),
        "everywhere": jax.device_put(jnp.arange(5), NamedSharding(sharding("8", "rows").mesh, PartitionSpec())),
    }
    hosts = [
        Hosts(index=index, count=2, owns=lambda device, index=index: device.id % 2 == index)  # type: ignore[misc]
        for index in (0, 1)
    ]
    first = Checkpointer(tmp_path, run="r", attempt="a", hosts=hosts[0])
    second = Checkpointer(tmp_path, run="r", attempt="a", hosts=hosts[1])
    for checkpointer in (first, second):
        checkpointer.save(1, tree, {})
    second.close()
    first.close()
    found = find_newest_valid(tmp_path, "r")
    assert found is not None
    assert {"host-0", "host-1"} == {path.name for path in (tmp_path / "00000001-a").iterdir() if path.is_dir()}
    assert_same(restore(found, tree)[0], tree)


def test_a_host_that_brings_nothing_is_named(tmp_path: Path) -> None:
    with Checkpointer(tmp_path, run="r", attempt="a", hosts=Hosts(count=3, wait_seconds=0.3)) as first:
        first.save(1, small_tree(1), {})
        with pytest.raises(SaveFailedError, match=r"00000001-a: no part after 0\.3 s from host 1, 2"):
            first.wait()
        with pytest.raises(CheckpointError, match="several hosts need one name for their attempt"):
            Checkpointer(tmp_path, run="r", hosts=Hosts(index=1, count=3))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"w": jnp.zeros((3, 4))}, r"\['w'\] was float32\[4,3\], and is float32\[3,4\]"),
        ({"w": jnp.zeros((4, 3), jnp.bfloat16)}, r"\['w'\] was float32\[4,3\], and is bfloat16\[4,3\]"),
        ({"mu": jnp.zeros(2)}, r"\['mu'\] is not in the checkpoint, float32\[2\]"),
        ({"m": None}, r"\['m'\] is in the checkpoint only, float32\[6\]"),
        ({"step": jax.random.key(0)}, r"\['step'\] was int32\[\], and is uint32\[2\] \(a threefry2x32 key\)"),
    ],
)
def test_another_tree_is_refused_with_its_paths(change: dict[str, Any], line: str, tmp_path: Path) -> None:
    found = saved(tmp_path, small_tree(1))
    with pytest.raises(
        ResumeRefusedError, match=rf"00000001-1 is of another model or optimizer:\n  {line}\nGive the run another name"
    ):
        restore(found, small_tree(1) | change)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"f": jnp.tanh}, r"\['f'\] is .*, no array: make it one"),
        ({"x": [1.5]}, r"\['x'\]\[0\] is 1\.5, no array"),
        ({"x": np.array(["a"])}, r"\['x'\] is str32, which zarr cannot store"),
    ],
)
def test_what_is_no_array_is_refused_by_its_path(tree: Any, message: str, tmp_path: Path) -> None:
    with Checkpointer(tmp_path, run="r") as checkpointer, pytest.raises(CheckpointError, match=message):
        checkpointer.save(1, tree, {})


def test_what_is_said_beside_the_arrays_is_plain_and_finite(tmp_path: Path) -> None:
    with Checkpointer(tmp_path, run="r") as checkpointer:
        for meta in ({"loss": float("nan")}, {"x": {1, 2}}):
            with pytest.raises(CheckpointError, match="must be JSON with finite numbers"):
                checkpointer.save(1, small_tree(1), meta)


@pytest.mark.parametrize(
    ("shape", "itemsize", "limit", "chunk"),
    [
        ((), 4, 16, ()),
        ((0, 3), 4, 16, (1, 3)),
        ((10,), 4, 1000, (10,)),
        ((10,), 4, 16, (4,)),  # three pieces of 4, 4 and 2
        ((9, 4), 4, 48, (3, 4)),
        ((2, 100), 1, 30, (1, 25)),
        ((3, 5, 7), 2, 14, (1, 1, 7)),
        ((4, 3), 8, 1, (1, 1)),  # never less than an element
    ],
)
def test_the_grid_depends_on_shape_and_dtype_alone(
    shape: tuple[int, ...], itemsize: int, limit: int, chunk: tuple[int, ...]
) -> None:
    assert grid.chunk_shape(shape, itemsize, limit) == chunk


def test_donated_at_once_the_copy_stands(tmp_path: Path) -> None:
    step = jax.jit(lambda tree: jax.tree.map(lambda leaf: leaf * 2 + 1, tree), donate_argnums=0)
    placed = sharding("8", "rows")
    with Checkpointer(tmp_path, run="r") as checkpointer:
        for number in range(3):
            tree = {
                "one": jnp.arange(1 << 16, dtype=jnp.float32) + number,
                "many": jax.device_put(jnp.arange(1 << 12, dtype=jnp.float32).reshape(64, 64) + number, placed),
            }
            expected = jax.tree.map(np.array, tree)
            checkpointer.save(number, tree, {})
            for _ in range(4):
                tree = step(tree)
            jax.block_until_ready(tree)
            checkpointer.wait()
            found = find_newest_valid(tmp_path, "r")
            assert found is not None
            assert found.step == number
            assert_same(restore(found, expected)[0], expected)
