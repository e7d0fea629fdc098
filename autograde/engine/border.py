"""Calls across the border: one side asks, the other answers, and either may ask back meanwhile.

What cannot cross as plain data crosses as a `Handle`, a number that only its owner can look up.
Gradients cross too: the caller's autograd graph goes on through a call on the other side, and
arguments changed in place are changed here as well. So a test reads as it does in a notebook,
where the answer is an ordinary function.
"""

import select
import socket
import time
from collections.abc import Callable

import torch

from autograde.engine.codec import BUFFERS, HEADER, LENGTHS, BorderError, Decoder, Encoder
from autograde.engine.errors import described, rebuilt
from autograde.engine.handles import Handle, card, handle_for
from autograde.engine.restore import restore

__tracebackhide__ = True  # its frames are in nobody's error message

NESTED = 40  # calls back and forth in one another
TAPES = 10_000  # calls whose gradients may still be asked for


class Gone(BaseException):
    """The other side closed the connection, or let the deadline pass.

    No `Exception`: a check that catches what an answer raises must not catch this.
    """


class Peer:
    """One end of the border. `allow(peer, op, target, args)` does what the other side asks for."""

    def __init__(self, sock: socket.socket, allow: Callable):
        self.sock, self._allow = sock, allow
        self.deadline = float("inf")  # on `time.monotonic`, of whatever is waited for
        self._owned: dict[int, object] = {}  # what this side has shown to the other
        self._numbers: dict[int, int] = {}
        self._tapes: dict[int, tuple[list, list]] = {}
        self._asked = self._depth = 0

    def ask(self, op: str, target, *args):
        """One question and its answer; raises what the other side raised."""
        self._asked += 1
        tape = self._asked if torch.is_grad_enabled() else None
        encoder = Encoder(self._ship)
        self._send(("ask", op, target, list(args), tape), encoder)
        sent = encoder.live

        def connect(kind, live):
            far_graph = kind == "done" and op == "call"  # an attribute is a leaf, with its gradient
            return _through(self, tape, live, sent) if far_graph else _leaves(live)

        while True:
            match self._receive(connect):
                case ("ask", str(_), _, list(_), _) as question, live:
                    self._serve(question, live)
                case ("done", result, changed), _:
                    if changed is not None:
                        restore(list(args), changed)
                    return result
                case ("raised", error), _:
                    raise rebuilt(error)
                case _:
                    raise BorderError("a message that is neither a question nor a reply")

    def serve(self) -> None:
        """Answer questions until the other side closes."""
        while True:
            match self._receive(lambda _, live: _leaves(live)):
                case ("ask", str(_), _, list(_), _) as question, live:
                    self._serve(question, live)
                case _:
                    raise BorderError("a message that is no question")

    def tell(self, *words) -> None:
        """Send words that nobody answers."""
        self._send(words, Encoder(self._ship))

    def hear(self) -> tuple:
        """The next message that is told."""
        return self._receive(lambda _, live: _leaves(live))[0]

    def _serve(self, question, leaves: list) -> None:
        _, op, target, args, tape = question
        encoder = Encoder(self._ship)
        self._depth += 1
        try:
            if self._depth > NESTED:
                raise RecursionError("the calls across the border are nested too deep")
            with torch.set_grad_enabled(tape is not None):
                reply = ("done", *self._done(op, target, args))
            data = encoder.frame(reply)
        except BorderError as error:
            data = Encoder(self._ship).frame(("raised", described(ValueError(str(error)))))
        except Gone:
            raise
        except BaseException as error:
            data = Encoder(self._ship).frame(("raised", described(error)))
        else:
            if encoder.live and len(self._tapes) < TAPES:
                self._tapes[tape] = leaves, encoder.live
        self._depth -= 1
        self.sock.sendall(data)

    def _done(self, op: str, target, args: list) -> tuple:
        """The result, and the arguments where the call has changed them."""
        if op == "backward":
            return self._backward(target, *args), None
        if op != "call":
            return self._allow(self, op, target, args), None
        before = self._snapshot(args)
        result = self._allow(self, op, target, args)
        return result, None if before is None or before == self._snapshot(args) else args

    def _snapshot(self, args: list) -> bytes | None:
        try:
            return Encoder(self._ship).frame(args)
        except Exception:  # no call can have changed what does not cross
            return None

    def _backward(self, tape, gradients: list) -> list:
        leaves, outputs = self._tapes[tape]
        for leaf in leaves:
            leaf.grad = None
        pairs = [(o, g) for o, g in zip(outputs, gradients, strict=True) if g is not None]
        torch.autograd.backward(*map(list, zip(*pairs, strict=True)), retain_graph=True)
        return [None if leaf.grad is None else leaf.grad.detach() for leaf in leaves]

    # Handles

    def _ship(self, value) -> list:
        """How a value crosses that is no plain data: the other side's own, or a card of ours."""
        if isinstance(value, Handle):
            peer, number = value._border_
            if peer is not self:
                raise BorderError("a handle of another process")
            return ["yours", number]
        number = self._numbers.setdefault(id(value), len(self._numbers))
        self._owned[number] = value  # kept alive, so that its id stays its own
        return ["handle", number, *card(value)]

    def _adopt(self, tree: list):
        match tree:
            case ["yours", int(number)] if number in self._owned:
                return self._owned[number]
            case ["handle", int(number), str(name), bool(is_callable), kind]:
                return handle_for(self, number, name, is_callable, kind)
        raise BorderError(f"an unknown kind of value: {str(tree[0])[:20]}")

    # Frames

    def _send(self, message, encoder: Encoder) -> None:
        try:
            self.sock.sendall(encoder.frame(message))
        except OSError:
            raise Gone from None

    def _receive(self, connect) -> tuple[object, list]:
        """The next message, and the live tensors that came with it."""
        header, size = LENGTHS.unpack(self._exactly(LENGTHS.size))
        if header > HEADER or size > BUFFERS:
            raise BorderError(f"a message of {header} and {size} bytes")
        decoder = Decoder(self._adopt)
        message = decoder.value(self._exactly(header), self._exactly(size), connect)
        return message, decoder.live

    def _exactly(self, count: int) -> bytearray:
        data = bytearray()  # grows with what arrives, not with what was announced
        while len(data) < count:
            left = self.deadline - time.monotonic()
            wait = None if left == float("inf") else max(left, 0)
            if not select.select([self.sock], [], [], wait)[0]:
                raise Gone
            try:
                chunk = self.sock.recv(min(count - len(data), 2**20))
            except OSError:
                raise Gone from None
            if not chunk:
                raise Gone
            data += chunk
        return data


def _leaves(live: list) -> list:
    return [tensor.requires_grad_() for tensor in live]


def _through(peer: Peer, tape, live: list, sent: list) -> list:
    """The far results as part of our own graph."""
    anchor = torch.zeros((), requires_grad=True)  # a result may need gradients when no input does
    return list(_Through.apply(peer, tape, len(live), anchor, *live, *sent))


class _Through(torch.autograd.Function):
    """A call on the other side, as one node of the graph here."""

    @staticmethod
    def forward(ctx, peer, tape, count, anchor, *tensors):
        ctx.peer, ctx.tape, ctx.count = peer, tape, count
        ctx.set_materialize_grads(False)
        return tuple(tensor.clone() for tensor in tensors[:count])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        found = ctx.peer.ask("backward", ctx.tape, list(gradients))
        if not isinstance(found, list):
            raise BorderError("gradients that are no list")
        return (None, None, None, None, *[None] * ctx.count, *found)
