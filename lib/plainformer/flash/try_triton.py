"""Triton for a notebook: a kernel can be defined everywhere, and runs where Triton is installed.

Set the variable TRITON_INTERPRET=1 before this file is imported, and again in the process that
defines a kernel, to run it on the processor: Triton looks at both moments.
"""

from collections.abc import Callable

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None

MISSING = (
    "Passed over: Triton is not installed here, so no kernel can run. On Linux: "
    "pip install 'plainformer[triton]'. Elsewhere the other exercises do without."
)


class PassedOver(AssertionError):
    """What cannot be tried on this machine, whoever wrote it."""


class Absent:
    """In place of a module of Triton: a kernel can be defined with it, and cannot be launched."""

    def __getattr__(self, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_) -> "Absent":
        return self

    def __getitem__(self, programs):
        raise PassedOver(MISSING)


if triton is None:
    triton = tl = Absent()


def launch(kernel, programs: int, *arguments, **constants) -> None:
    """Run a kernel as so many programs; what it writes, it writes into its arguments.

    The same as `kernel[(programs,)](...)`, with the errors of an unwritten kernel and of a missing
    Triton as what they are.
    """
    run: Callable = kernel[(programs,)]
    try:
        run(*arguments, **constants)
    except Exception as error:
        if "NotImplementedError" in str(error):  # the interpreter wraps it
            raise NotImplementedError("the kernel is not written yet") from error
        raise
