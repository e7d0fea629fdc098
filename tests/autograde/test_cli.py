"""The command line as a whole: its help, and errors in one line."""

import pytest

from autograde import cli


def test_the_help_is_for_users_and_tells_the_order_of_work(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--help"])
    assert stopped.value.code == 0
    said = capsys.readouterr().out
    assert "thin shell" not in said
    places = [said.index(f"\n  {step} 02") for step in ("check", "grade", "feedback", "export")]
    assert places == sorted(places)
    assert "Exit status: 0 all is well" in said


def test_every_command_is_in_the_overview(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    overview, _, listed = capsys.readouterr().out.partition("all commands:")
    names = ["release", *(name.replace("_", "-") for name in cli.COMMANDS)]
    assert [name for name in names if f"\n  {name} " not in overview] == []
    assert [name for name in names if f" {name}" not in listed] == []


def test_a_mistyped_class_is_a_wrong_call(tmp_path, capsys):
    assert cli.main(["status", "--class-dir", str(tmp_path / "clas")]) == 2
    assert "there is no folder" in capsys.readouterr().err
