"""Reading Python code without running it, in several threads at once.

Two threads that build trees at the same moment may meet in CPython 3.11's one counter of depth:
`SystemError: AST constructor recursion depth mismatch`, and an honest submission would not be
graded. So they take turns.
"""

import ast
import re
import symtable
import threading
import warnings

# A "\\d" in an answer is the learner's affair, and no warning on the teacher's screen.
warnings.filterwarnings("ignore", module=r"^(<unknown>|cell)$")
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what `parse` may raise
_turn = threading.Lock()


def parse(code: str) -> ast.Module:
    """As `ast.parse`. Raises one of UNPARSABLE."""
    with _turn:
        return ast.parse(code)


def defined_names(code: str) -> set[str]:
    """The names that a cell binds at its top level."""
    names = set()
    for node in parse(_plain_python(code)).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        else:
            stored = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
            names |= {n.id for n in stored if isinstance(n.ctx, ast.Store)}
    return names


def used_names(code: str) -> set[str]:
    """The global names that a cell reads, inside its functions too; parameters are not global."""

    def read(table: symtable.SymbolTable) -> set[str]:
        outer = table.get_type() == "module"
        symbols = [s for s in table.get_symbols() if s.is_referenced()]
        own = {s.get_name() for s in symbols if outer or s.is_global()}
        return own.union(*map(read, table.get_children()))

    return read(symtable.symtable(_plain_python(code), "cell", "exec"))


def _plain_python(code: str) -> str:
    """Magics (% and !) become `pass`, so that `ast` can read the rest."""
    return re.sub(r"^(\s*)[%!].*$", r"\1pass", code, flags=re.MULTILINE)
