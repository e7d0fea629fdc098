"""The house stands: who may import whom, what `import plainformer` costs, what a wheel holds."""

import ast
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# From ground to roof. A module imports only from floors below its own, or from an earlier line of
# its own floor; "a < b" stands for two lines. A folder's name covers its files not named elsewhere.
FLOORS = [
    (0, "contracts seeding messages mistakes"),
    (0, "check.describe check.failure < check.ladder < check"),
    (0, "tokenizers.chars < tokenizers.byte_bpe < tokenizers.gpt_bpe"),
    (0, "tokenizers.wordpiece < tokenizers.unigram"),
    (0, "scratch.tensor < scratch.operations < scratch.layers < scratch.optim < scratch.gradcheck"),
    (1, "activations losses masks"),
    (1, "attention.dot_product < attention.local attention.linear"),
    (1, "positions.sinusoidal positions.buckets positions.alibi"),
    (1, "positions.rotary positions.rotary_scaling"),
    (1, "flash.semantics < flash.online_softmax < flash.tiled flash.triton_kernels"),
    (1, "flash.launch flash.try_triton < flash.attention < flash.occupancy flash.correctness"),
    (1, "flash.bench"),
    (2, "norms embeddings feed_forward positions.relative_bias cache.contiguous < cache"),
    (2, "attention.multi_head < attention.grouped_query attention.longformer < attention.latent"),
    (3, "blocks"),
    (4, "models"),
    (5, "data.wheels < data.assets < data < pretrained"),
    (6, "training generation inspection contrastive"),
    (7, "figures.palette < figures"),
    (8, "cli"),
]
NEVER = [  # importer, imported, why: what the floors alone would allow
    ("data", "models", "data never imports a model"),
    ("figures", "models", "figures take tensors"),
    ("figures", "pretrained", "figures take tensors"),
    ("", "scratch", "scratch is there to be read; nothing of ours builds on it"),
]
LINES = {
    name: (floor, line)
    for line, (floor, names) in enumerate(
        (floor, part) for floor, row in FLOORS for part in row.split(" < ")
    )
    for name in names.split()
}


def violations(lib: Path) -> list[str]:
    """Every import under `lib`/plainformer that breaks a rule, as "file:line: what and why"."""
    files = {_module(file, lib): file for file in sorted(lib.glob("plainformer/**/*.py"))}
    found = []
    for module, file in files.items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for target in _imported(node, files):
                why = _why_not(module, target, files)
                if why:
                    where = f"{file.relative_to(lib.parent).as_posix()}:{node.lineno}"
                    found.append(f"{where}: {module} imports {target}: {why}")
    return found


def _module(file: Path, lib: Path) -> str:
    parts = file.relative_to(lib).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _imported(node: ast.AST, files: dict[str, Path]) -> list[str]:
    """The modules of ours that one import statement names."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level:
        return ["a relative name"]
    elif isinstance(node, ast.ImportFrom):
        paths = [f"{node.module}.{alias.name}" for alias in node.names]
        names = [path if path in files else node.module for path in paths]
    else:
        return []
    return [name for name in dict.fromkeys(names) if name.split(".")[0] == "plainformer"]


def _why_not(module: str, target: str, files: dict[str, Path]) -> str | None:
    """The rule that forbids `module` to import `target`, if there is one."""
    if target == "a relative name":
        return "write the name in full, so that it can be searched for"
    if files[module].name == "__init__.py":
        inside = module != "plainformer" and target.startswith(f"{module}.")
        return None if inside else "a folder re-exports its own files only"
    if target == "plainformer":
        return None  # nothing but the version is there
    if target not in files:
        return "there is no such module"
    if files[target].name == "__init__.py":
        return "library modules import files, not folders"
    (floor, line), (target_floor, target_line) = _line(module), _line(target)
    if floor is None or target_floor is None:
        missing = module if floor is None else target
        return f"{missing} has no floor yet; enter it in FLOORS of tests/test_floors.py"
    for importer, imported, why in NEVER:
        inside = _within(module, imported)
        if not inside and _within(module, importer) and _within(target, imported):
            return why
    if target_floor > floor:
        return f"floor {floor} must not import from floor {target_floor}"
    if target_floor == floor and target_line >= line:
        return f"on floor {floor}, it does not stand on an earlier line"
    return None


def _within(module: str, part: str) -> bool:
    return f"{module}.".startswith(f"plainformer.{part}." if part else "plainformer.")


def _line(module: str) -> tuple[int, int] | tuple[None, None]:
    name = module.removeprefix("plainformer.")
    while name:
        if name in LINES:
            return LINES[name]
        name = name.rpartition(".")[0]
    return None, None


def test_every_module_imports_from_below():
    assert violations(ROOT / "lib") == []


def test_every_module_has_a_floor():
    modules = [_module(file, ROOT / "lib") for file in ROOT.glob("lib/plainformer/**/*.py")]
    files = [module for module in modules if f"{module}.".count(".") > 1]
    folders = {module for module in modules if any(m.startswith(f"{module}.") for m in modules)}
    assert [m for m in files if m not in folders and _line(m)[0] is None] == []


@pytest.mark.parametrize(
    ("path", "statement", "says"),
    [
        ("masks.py", "import plainformer.cli", "floor 1 must not import from floor 8"),
        ("masks.py", "from plainformer import cli", "floor 1 must not import from floor 8"),
        ("masks.py", "def f():\n    from plainformer.cli import main", "floor 1 must not"),
        ("masks.py", "from plainformer.losses import x", "does not stand on an earlier line"),
        ("messages.py", "from plainformer.check import x", "does not stand on an earlier line"),
        ("masks.py", "from .contracts import x", "write the name in full"),
        ("cli.py", "from plainformer.data import x", "import files, not folders"),
        ("cli.py", "from plainformer.nowhere import x", "there is no such module"),
        ("extra.py", "from plainformer.masks import x", "plainformer.extra has no floor yet"),
        ("data/assets.py", "from plainformer.models.gpt import x", "never imports a model"),
        ("models/gpt.py", "from plainformer.models.bert import x", "an earlier line"),
        ("cli.py", "from plainformer.scratch.tensor import x", "scratch is there to be read"),
        ("__init__.py", "from plainformer.masks import x", "re-exports its own files only"),
        ("data/__init__.py", "from plainformer.masks import x", "re-exports its own files only"),
    ],
)
def test_a_planted_violation_is_found_and_its_line_is_named(tmp_path, path, statement, says):
    for name in [
        *["__init__", "cli", "check", "messages", "masks", "losses", "contracts", "extra"],
        *["data/__init__", "data/assets", "models/__init__", "models/gpt", "models/bert"],
        *["scratch/__init__", "scratch/tensor", "scratch/layers"],
    ]:
        file = tmp_path / "lib" / "plainformer" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('"""Nothing."""\n\n')
    allowed = "from plainformer.scratch.tensor import x\nfrom plainformer import __version__\n"
    (tmp_path / "lib/plainformer/scratch/layers.py").write_text(allowed)
    (tmp_path / "lib/plainformer/data/__init__.py").write_text("import plainformer.data.assets\n\n")
    assert violations(tmp_path / "lib") == []
    planted = tmp_path / "lib" / "plainformer" / path
    with planted.open("a") as file:
        file.write(f"{statement}\n")
    (found,) = violations(tmp_path / "lib")
    line = 2 + len(statement.splitlines())
    assert found.startswith(f"lib/plainformer/{path}:{line}: plainformer")
    assert says in found


def test_the_grader_knows_the_library_by_its_checks_and_their_messages_alone():
    """Whatever else it imported could be changed under it by the answers that it judges."""
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in ROOT.glob("autograde/**/*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for target in _imported(node, {"plainformer.check": file, "plainformer.messages": file})
        if target not in ("plainformer.check", "plainformer.messages")
    ]
    assert found == []


def test_chapters_never_import_the_grader():
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in ROOT.glob("solutions/*.md")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if line.split()[:2] in (["import", "autograde"], ["from", "autograde"])
    ]
    assert found == []


def test_importing_the_library_imports_nothing_heavy():
    program = "import sys, plainformer; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "plainformer" in done.stdout.split(), done.stderr
    assert not {"torch", "numpy", "matplotlib", "jaxtyping"} & set(done.stdout.split())


def test_a_wheel_holds_every_module(tmp_path):
    tree = tmp_path / "tree"
    clutter = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "lib", tree / "lib", ignore=clutter)
    for name in ["pyproject.toml", "README.md", "LICENSE", "NOTICE"]:
        shutil.copy(ROOT / name, tree)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*build, "--wheel-dir", str(tmp_path), str(tree)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("plainformer-*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".py")}
    modules = (tree / "lib").rglob("*.py")
    assert held == {file.relative_to(tree / "lib").as_posix() for file in modules}
    licences = [name for name in zipfile.ZipFile(wheel).namelist() if "/licenses/" in name]
    assert sorted(Path(name).name for name in licences) == ["LICENSE", "NOTICE"]


def test_gitignore_swallows_nothing_of_the_sources():
    if not (ROOT / ".git").exists():
        pytest.skip("This tree is not a git checkout, so there is nothing that git could ignore.")
    sources = [
        file.relative_to(ROOT).as_posix()
        for folder in ["lib", "autograde", "tests", "solutions", "chapters", "pages", "_ext"]
        for file in sorted((ROOT / folder).rglob("*"))
        if file.suffix in (".py", ".md", ".ipynb") and ".ipynb_checkpoints" not in file.parts
    ]
    # --no-index: git says of a file that it already tracks that it is not ignored
    command = ["git", "check-ignore", "--no-index", *sources]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "lib/plainformer/__init__.py" in sources
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
