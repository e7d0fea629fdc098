"""Print the tests that the uncommitted change touches, for `make test-fast`."""

import subprocess
from pathlib import Path, PurePosixPath


def tests_for(path: str) -> set[str]:
    """The test files or folders that judge one changed file."""
    file = PurePosixPath(path)
    top, name = file.parts[0], file.stem
    if top == "tests":
        judges = {"answers": "tests/chapters", "data": "tests/autograde"}
        near = judges.get(file.parts[1], f"tests/{file.parts[1]}")
        return {path if file.name.startswith("test_") else near}
    if path.startswith("lib/plainformer/"):
        mirrored = PurePosixPath("tests/lib", *file.parts[2:-1])
        return {"tests/test_floors.py", str(mirrored)}
    if top == "autograde":
        own = f"tests/autograde/test_{name}.py"
        return {own, "tests/autograde/test_run.py"} if Path(own).exists() else {"tests/autograde"}
    if top in ("solutions", "chapters"):
        return {"tests/chapters", "tests/coverage"}
    if top in ("_ext", "_static", "pages") or file.suffix in (".md", ".yml", ".bib"):
        return {"tests/site"}
    return {"tests/test_floors.py"}


def changed() -> list[str]:
    """Files that differ from the last commit, new ones included."""
    command = ["git", "status", "--porcelain", "--untracked-files=all", "--no-renames"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line[3:].strip('"') for line in lines if line[1] != "D" and line[0] != "D"]


if __name__ == "__main__":
    chosen = set().union(*map(tests_for, changed())) or {"tests/test_floors.py"}
    print(" ".join(sorted(test for test in chosen if Path(test).exists())))
