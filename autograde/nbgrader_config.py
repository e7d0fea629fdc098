"""nbgrader's own settings for a class, for people who want formgrader and its commands.

Our commands need no such file: they give nbgrader its settings in code.
"""

import json
from pathlib import Path

from autograde.build import STUB, TEXT_STUB
from autograde.choose import add_class_dir, chosen_class
from autograde.course_rules import gradebook_url
from autograde.plan import ClassFolder, NoClass, write
from autograde.record import COURSE_ID

TEXT = '''"""Settings of nbgrader for this class, written by our command nbgrader-config."""

c = get_config()  # noqa: F821  (nbgrader defines it)

c.CourseDirectory.course_id = {course_id!r}
c.CourseDirectory.root = {root!r}
{where}c.ClearSolutions.code_stub = {{"python": {stub!r}}}
c.ClearSolutions.text_stub = {text_stub!r}

# Without these two a submission whose tests carry the tag "skip-execution" gets full marks from
# `nbgrader autograde`: it passes over the cells, and a cell without an error counts as right.
c.ExecutePreprocessor.skip_cells_with_tag = ""
c.NotebookClient.skip_cells_with_tag = ""

# Outputs that `nbgrader autograde` has made may hold scripts; formgrader shows them otherwise.
c.HTMLExporter.sanitize_html = True
'''


def nbgrader_config(root: Path) -> str:
    """The text of `nbgrader_config.py` for a class folder."""
    url = gradebook_url(ClassFolder(root))
    where = f"c.CourseDirectory.db_url = {url!r}\n" if url else ""
    return TEXT.format(
        course_id=COURSE_ID, root=str(root), where=where, stub=STUB, text_stub=TEXT_STUB
    )


def add_nbgrader_config(commands) -> None:
    parser = commands.add_parser("nbgrader-config", help="write settings for formgrader")
    add_class_dir(parser)
    parser.set_defaults(run=write_config)


def write_config(args) -> int:
    """Write `nbgrader_config.py` into the class folder; an existing other one is left alone."""
    folder = chosen_class(args)
    if not folder.root.is_dir():
        raise NoClass(
            f"there is no folder {folder.root}; name the class with --class-dir, or make the folder"
        )
    path = folder.root / "nbgrader_config.py"
    text = nbgrader_config(folder.root)
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise ValueError(f"{path} exists and says something else; move it away to have a new one")
    write(path, text)
    print(
        json.dumps({"path": str(path)})
        if args.json
        else f"{path}\nnow: cd {path.parent} && "
        "jupyter lab, and open Formgrader from the Nbgrader menu"
    )
    return 0
