"""Calls across the border: the same results, errors, gradients and changes as calls at home."""

import inspect
import socket
import threading
import time

import numpy
import pytest
import torch

from autograde.engine.border import BorderError, Gone, Peer
from autograde.engine.handles import Handle, only_calls, operate
from plainformer import check


class Space:
    """An answer's names, served by a thread: the protocol is the same as between processes."""

    def __init__(self, code: str):
        self.names: dict = {}
        exec(compile(code, "<90-answer>", "exec"), self.names)
        ours, theirs = socket.socketpair()
        self._end = theirs

        def allow(peer, op, target, args):
            return self.names[target] if op == "name" else operate(peer, op, target, args)

        self.far = Peer(theirs, allow)
        self.near = Peer(ours, only_calls)
        self.near.deadline = time.monotonic() + 20
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        try:
            self.far.serve()
        except Gone:
            self._end.close()

    def __getitem__(self, name: str):
        return self.near.ask("name", name)


@pytest.fixture
def space():
    made: list[Space] = []

    def make(code: str) -> Space:
        made.append(Space(code))
        return made[-1]

    yield make
    for one in made:
        one.near.sock.close()


def test_functions_are_called_and_values_come_over(space):
    far = space("import torch\nKEY = {'a': 2}\ndef double(x, *, by=2): return by * x")
    assert far["KEY"] == {"a": 2}
    assert far["double"](3) == 6
    assert far["double"](torch.arange(3.0), by=3).equal(torch.tensor([0.0, 3.0, 6.0]))
    assert isinstance(far["double"], Handle)
    assert callable(far["double"])


def test_the_signature_is_that_of_the_answer(space):
    far = space("def attention(q, k, v, mask=None): pass")
    assert list(inspect.signature(far["attention"]).parameters) == ["q", "k", "v", "mask"]
    assert far["attention"].__name__ == "attention"


def test_gradients_go_through_a_far_call_as_through_a_near_one(space):
    code = "def f(x, y): return (x * y).sum(-1), (x.exp() @ y.T).tanh()"
    far = space(code)["f"]
    near: dict = {}
    exec(code, near)
    x, y = (torch.randn(3, 5, generator=torch.Generator().manual_seed(n)) for n in (1, 2))
    found = []
    for fn in (far, near["f"]):
        a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
        first, second = fn(a.cos(), b)
        (first.pow(2).sum() + second.sum()).backward()
        found.append((a.grad, b.grad))
    torch.testing.assert_close(found[0], found[1])


def test_jacobians_and_a_far_modules_own_gradients(space):
    far = space(
        "import torch\nclass Line(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.w = torch.nn.Parameter(torch.tensor([2.0, 3.0]))\n"
        "    def forward(self, x): return x @ self.w\n"
    )
    jacobian = torch.autograd.functional.jacobian(far["Line"](), torch.eye(2))
    by_row = torch.zeros(2, 2, 2)
    by_row[0, 0] = by_row[1, 1] = torch.tensor([2.0, 3.0])
    assert jacobian.equal(by_row)
    line = far["Line"]()
    line(torch.tensor([5.0, 7.0])).backward()
    assert line.w.requires_grad
    assert line.w.grad.tolist() == [5.0, 7.0]
    assert [p.grad.tolist() for p in line.parameters()] == [[5.0, 7.0]]
    assert isinstance(line, torch.nn.Module)
    assert line.state_dict()["w"].tolist() == [2.0, 3.0]
    line.load_state_dict({"w": torch.tensor([1.0, 1.0])})
    assert line(torch.tensor([5.0, 7.0])).item() == 12.0


def test_without_gradients_nothing_is_kept(space):
    far = space("def f(x): return 2 * x")
    with torch.no_grad():
        assert not far["f"](torch.ones(2, requires_grad=True)).requires_grad
    assert far.far._tapes == {}


def test_arguments_changed_in_place_are_changed_here(space):
    far = space(
        "def spoil(x, items, table, array, generator):\n"
        "    import torch\n    x.mul_(2); items.append(x); table['k'] = 1; array[0] = 9\n"
        "    return torch.rand(1, generator=generator)"
    )
    x, items, table, array = torch.ones(2), [1], {"a": [1]}, numpy.zeros(2)
    inner, generator = table["a"], torch.Generator().manual_seed(1)
    far["spoil"](x, items, table, array, generator)
    assert x.tolist() == [2.0, 2.0]
    assert items[1].tolist() == [2.0, 2.0]
    assert len(items) == 2
    assert table == {"a": [1], "k": 1}
    assert table["a"] is inner
    assert array[0] == 9
    reference = torch.Generator().manual_seed(1)
    torch.rand(1, generator=reference)
    assert torch.rand(1, generator=generator) == torch.rand(1, generator=reference)


def test_checks_see_a_change_of_arguments_across_the_border(space):
    far = space("def centre(x):\n    x -= x.mean()\n    return x")
    with pytest.raises(check.CheckFailed, match="`x`") as failed:
        check.calls(far["centre"], [(torch.tensor([1.0, 3.0]),)], [torch.tensor([-1.0, 1.0])], "c")
    assert failed.value.rule == "modified"


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("raise ValueError('no such mask')", ValueError, "no such mask"),
        ("raise NotImplementedError('later')", NotImplementedError, "later"),
        ("return {}['a']", Exception, "a"),
        ("return x.reshape(5)", RuntimeError, "shape"),
        ("raise type('Own', (ValueError,), {})('mine')", ValueError, "mine"),
        ("import sys; sys.exit(3)", Exception, "3"),
        ("raise type('E', (Exception,), {'__str__': lambda s: 1/0})", Exception, "cannot be made"),
        ("x.l = x\n    a = []\n    a.append(a)\n    return a", ValueError, "deeper"),
    ],
)
def test_errors_are_raised_here_as_what_they_were(space, body, kind, words):
    far = space(f"def f(x):\n    {body}")
    with pytest.raises(kind, match=words) as raised:
        far["f"](torch.ones(2, 3))
    last = inspect.getinnerframes(raised.value.__traceback__)[-1]
    assert last.filename == "<90-answer>" or kind is ValueError


def test_no_far_error_can_be_one_of_ours(space):
    far = space(
        "from plainformer.check import CheckFailed\n"
        "def f(): raise CheckFailed('values', 'x', 'ok', [])"
    )
    with pytest.raises(AssertionError) as raised:
        far["f"]()
    assert not isinstance(raised.value, check.CheckFailed)


def test_callbacks_run_here_and_nothing_behind_them_is_reached(space):
    far = space(
        "def twice(f, x): return f(f(x))\n"
        "def globals_of(f): return f.__globals__\n"
        "def code_of(f): return f.gi_frame\n"
        "def count(f): return len(f)\n"
    )
    secret = 41
    assert far["twice"](lambda x: x + secret, 1) == 83
    for name in ("globals_of", "code_of", "count"):
        with pytest.raises(AttributeError):
            far[name](lambda x: x + secret)


def test_gradients_go_through_a_callback_and_back(space):
    far = space(
        "import torch\ndef slope(f, x):\n    x = x.clone().requires_grad_()\n"
        "    return torch.autograd.grad(f(x).sum(), x)[0]"
    )
    x = torch.tensor([0.1, 0.7])
    torch.testing.assert_close(far["slope"](torch.sin, x), x.cos())


def test_generators_contexts_items_and_subscripted_calls(space):
    far = space(
        "def steps(n):\n    for i in range(n): yield i * i\n"
        "class Kernel:\n    def __getitem__(self, grid): return lambda x: (grid, x)\n"
        "    def __len__(self): return 3\n    def __contains__(self, x): return x == 2\n"
        "    def __enter__(self): return 'in'\n    def __exit__(self, *_): self.left = True\n"
        "kernel = Kernel()\n"
    )
    assert list(far["steps"](4)) == [0, 1, 4, 9]
    kernel = far["kernel"]
    assert kernel[(2, 2)](7) == ((2, 2), 7)
    assert len(kernel) == 3
    assert 2 in kernel
    assert 5 not in kernel
    with kernel as word:
        assert word == "in"
    assert kernel.left is True
    kernel.size = 4
    assert kernel.size == 4
    assert not hasattr(kernel, "nothing")


def test_an_object_that_says_yes_to_everything_convinces_nobody(space):
    far = space(
        "class Yes:\n    __eq__ = __ne__ = __lt__ = __ge__ = lambda *_: True\n"
        "    __float__ = lambda s: 6.0\n    __bool__ = lambda s: True\n"
        "    __instancecheck__ = lambda *_: True\n    __class__ = float\n"
        "def f(): return Yes()"
    )
    for compare in (check.equal, check.close):
        with pytest.raises(check.CheckFailed):
            compare(far["f"](), 6, "six")


def test_a_far_object_goes_home_as_itself(space):
    far = space("class Box: pass\nbox = Box()\ndef same(a): return a is box")
    assert far["same"](far["box"]) is True
    assert repr(far["box"]).startswith("<")
    assert type(far["box"]).__name__ == "Box"


def test_what_is_no_message_ends_the_connection():
    for data in (b"x" * 12, b"\0" * 12, b"", b"\xff" * 12):
        ours, theirs = socket.socketpair()
        theirs.sendall(data)
        theirs.close()
        with pytest.raises((BorderError, Gone)):
            Peer(ours, only_calls).ask("name", "f")
        ours.close()


def test_a_drip_of_bytes_ends_at_the_deadline():
    ours, theirs = socket.socketpair()
    theirs.sendall(b"\0\0")
    peer = Peer(ours, only_calls)
    peer.deadline = time.monotonic() + 0.2
    with pytest.raises(Gone):
        peer.ask("name", "f")
    ours.close(), theirs.close()
