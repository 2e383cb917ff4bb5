"""The data of a study lie in a folder that the user names."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from trueodds.core.errors import InputError
from trueodds_studies import ecology
from trueodds_studies.common.data_files import SOURCES, find_file, hash_file, load_npz, load_parquet
from trueodds_studies.common.network_predictions import CIFAR10_FILES
from trueodds_studies.obesity.study import FEATURES, LABEL_COLUMN, OBESITY_FILE


def test_a_file_that_is_not_there_is_named_with_its_source(tmp_path):
    with pytest.raises(InputError, match=r"TO802.*no brcal_hockey\.parquet.*BRcal.*--data"):
        find_file("brcal_hockey.parquet", tmp_path)


def test_arrays_and_columns_are_read_whole(tmp_path):
    np.savez(tmp_path / "cifar10h.npz", labels=np.array([1, 2]))
    assert load_npz("cifar10h.npz", tmp_path)["labels"].tolist() == [1, 2]
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"y": [0, 1], "name": ["a", "b"]}), tmp_path / "brcal_hockey.parquet")
    read = load_parquet("brcal_hockey.parquet", tmp_path)
    assert read["y"].tolist() == [0, 1]
    assert read["name"].tolist() == ["a", "b"]


def test_the_folder_may_be_set_by_the_environment(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cifar10h.npz").write_bytes(b"")
    monkeypatch.setenv("TRUEODDS_REFERENCE", str(tmp_path))
    assert find_file("cifar10h.npz", None) == tmp_path / "data" / "cifar10h.npz"


def parquet_file(path, **table):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(table), path)


def test_only_what_is_needed_is_read_in_the_requested_order(tmp_path):
    np.savez(tmp_path / "cifar10h.npz", labels=np.array([1, 2]), probs=np.eye(2))
    parquet_file(tmp_path / "brcal_hockey.parquet", y=[0, 1], x=[0.5, 0.6], rand=[0.1, 0.2])
    assert list(load_npz("cifar10h.npz", tmp_path, "probs")) == ["probs"]
    assert list(load_parquet("brcal_hockey.parquet", tmp_path, "x", "y")) == ["x", "y"]
    assert list(load_parquet("brcal_hockey.parquet", tmp_path)) == ["y", "x", "rand"]


def test_a_part_that_a_file_lacks_is_named_beside_those_it_has(tmp_path):
    np.savez(tmp_path / "cifar10h.npz", labels=np.array([1, 2]))
    parquet_file(tmp_path / "brcal_hockey.parquet", y=[0, 1], winner=["a", "b"])
    with pytest.raises(InputError, match=r"TO803.*no probs, counts in .*cifar10h\.npz, which holds labels\."):
        load_npz("cifar10h.npz", tmp_path, "probs", "labels", "counts")
    with pytest.raises(
        InputError, match=r"TO803.*no x in .*brcal_hockey\.parquet, which holds y, winner\. .*docs/studies\.md"
    ):
        load_parquet("brcal_hockey.parquet", tmp_path, "y", "x")


def intact_archive(tmp_path):
    np.savez(tmp_path / "whole.npz", labels=np.arange(1000))
    return (tmp_path / "whole.npz").read_bytes()


def one_array(tmp_path):
    np.save(tmp_path / "one.npy", np.arange(3))
    return (tmp_path / "one.npy").read_bytes()


def flipped(tmp_path):
    content = bytearray(intact_archive(tmp_path))
    content[500] ^= 255  # among the numbers, which have a checksum
    return bytes(content)


def pickled(tmp_path):
    np.savez(tmp_path / "objects.npz", labels=np.array([{}], dtype=object))
    return (tmp_path / "objects.npz").read_bytes()


BROKEN = {
    "empty": lambda _: b"",
    "words": lambda _: b"not a file of numbers",
    "cut": lambda where: intact_archive(where)[:-200],
    "flipped": flipped,
    "an array without a name": one_array,
    "pickled objects": pickled,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_archive_is_reported(name, tmp_path):
    (tmp_path / "cifar10h.npz").write_bytes(BROKEN[name](tmp_path))
    with pytest.raises(InputError, match=r"TO803.*cannot be read.*cifar10h\.npz: .*cifar-10h"):
        load_npz("cifar10h.npz", tmp_path, "labels")


@pytest.mark.parametrize("bytes_of", [b"", b"y,x\n0,1\n", b"PAR1 and no more PAR1"])
def test_a_broken_table_is_reported(bytes_of, tmp_path):
    (tmp_path / "brcal_hockey.parquet").write_bytes(bytes_of)
    with pytest.raises(InputError, match=r"TO803.*cannot be read.*brcal_hockey\.parquet: .*BRcal"):
        load_parquet("brcal_hockey.parquet", tmp_path, "y")


def test_a_stamp_is_that_of_the_file_that_would_be_opened(tmp_path, monkeypatch):
    for folder, content in (("data", b"one"), ("other", b"two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "cifar10h.npz").write_bytes(content)
    monkeypatch.setenv("TRUEODDS_REFERENCE", str(tmp_path))
    assert hash_file("cifar10h.npz", None) == hashlib.sha256(b"one").hexdigest()
    assert hash_file("cifar10h.npz", tmp_path / "other") == hashlib.sha256(b"two").hexdigest()
    with pytest.raises(InputError, match="TO802"):
        hash_file("cifar10h.npz", tmp_path)


def test_the_page_of_studies_says_what_each_file_holds():
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    described = dict(re.findall(r"^\| `(\w+\.(?:npz|parquet))` \| (.*) \|$", page, re.MULTILINE))
    assert set(described) == set(SOURCES)
    read = [(OBESITY_FILE, [LABEL_COLUMN, *FEATURES]), (ecology.ECOLOGY_FILE, ["SPECIES", "OBSERVED", *ecology.MODELS])]
    read += [(file, ["labels", key]) for file, key in CIFAR10_FILES.values()]
    assert [(file, name) for file, names in read for name in names if f"`{name}`" not in described[file]] == []


def test_every_source_says_where_it_comes_from():
    assert all(text for text in SOURCES.values())
