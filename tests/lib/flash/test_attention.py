import math
import subprocess
import sys
import textwrap

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close as close

from plainformer.attention.grouped_query import grouped_query_attention
from plainformer.flash import attention
from plainformer.flash.attention import flash_attention
from plainformer.flash.launch import is_interpreted
from plainformer.flash.semantics import reference_attention
from plainformer.masks import causal_mask
from plainformer.seeding import generator
from tests.lib.flash.agreement import Case, Results, assert_agrees
from tests.lib.flash.edges import memory_in_other_orders, nothing_at_all

needs_interpreter = pytest.mark.skipif(
    not is_interpreted(),
    reason="There is a GPU here, so Triton compiles; its interpreter is not switched on.",
)


def qkv(b=2, h=6, g=3, t=5, s=7, d_head=16, d_value=16, **options):
    rng = generator(0)
    sizes = [(b, h, t, d_head), (b, g, s, d_head), (b, g, s, d_value)]
    return [torch.randn(size, generator=rng, **options) for size in sizes]


def public(backend):
    """The function that readers call, with PyTorch's own way of asking for gradients."""

    def run(x):
        q, k, v = (y.detach().requires_grad_() for y in x[:3])
        rules = {"window": x.window, "key_lengths": x.key_lengths, "scale": x.scale}
        o, lse = flash_attention(q, k, v, **rules, backend=backend, return_lse=True)
        outputs, pushes = (o, lse), (x.grad_o, x.grad_lse.where(lse > -math.inf, 0.0))
        return Results(o.detach(), lse.detach(), *torch.autograd.grad(outputs, (q, k, v), pushes))

    return run


def test_agrees_with_the_rest_of_the_library():
    q, k, v = qkv()
    close(flash_attention(q, k, v), grouped_query_attention(q, k, v))
    want = grouped_query_attention(q, k, v, causal_mask(5, 7))
    close(flash_attention(q, k, v, causal=True), want)


def test_agrees_with_pytorch_where_both_align_alike():
    q, k, v = qkv(h=3, t=7)
    want = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    close(flash_attention(q, k, v, causal=True), want)
    q = q[:, :, :5]
    unlike = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert not torch.allclose(flash_attention(q, k, v, causal=True), unlike)


BACKENDS = ["auto", "tiles", pytest.param("triton", marks=needs_interpreter)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_output_lse_and_gradients(backend):
    assert_agrees(public(backend), Case(b=2, h=4, g=2, causal=True, window=(7, 0)))
    assert_agrees(public(backend), Case(b=2, key_lengths=(19, 0), d_value=24))
    assert_agrees(public(backend), Case(scale=-0.3, dtype=torch.bfloat16))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("edge", [nothing_at_all, memory_in_other_orders])
def test_edges_through_autograd(backend, edge):
    edge(public(backend))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sum_sends_one_number_to_all_places(backend):
    """Dao-AILab/flash-attention 355: strides of zero in what comes from above."""
    mine, theirs = ([x.requires_grad_() for x in qkv()] for _ in range(2))
    flash_attention(*mine, causal=True, backend=backend).sum().backward()
    reference_attention(*theirs, causal=True)[0].sum().backward()
    for a, b in zip(mine, theirs, strict=True):
        close(a.grad, b.grad, atol=1e-6, rtol=1e-5)


def test_sdpa_is_there_to_compare_with():
    q, k, v = qkv()
    rules = {"causal": True, "window": (3, None), "key_lengths": torch.tensor([7, 2]), "scale": 0.3}
    close(flash_attention(q, k, v, **rules, backend="sdpa"), flash_attention(q, k, v, **rules))


def test_the_gradients_pass_a_numerical_check():
    inputs = [
        x.requires_grad_()
        for x in qkv(b=1, h=2, g=1, t=4, s=5, d_head=3, d_value=2, dtype=torch.float64)
    ]
    rules = {"causal": True, "key_lengths": torch.tensor([4]), "return_lse": True}
    assert torch.autograd.gradcheck(lambda *x: flash_attention(*x, **rules), inputs)


def test_lse_alone_has_gradients_too():
    inputs = [x.requires_grad_() for x in qkv(dtype=torch.float64)]
    _, lse = flash_attention(*inputs, return_lse=True)
    grads = torch.autograd.grad(lse.square().sum(), inputs)
    want = torch.autograd.grad(reference_attention(*inputs)[1].square().sum(), inputs[:2])
    close(grads[:2], want)
    assert grads[2].eq(0).all()


@pytest.mark.parametrize("push", [torch.sum, lambda o: o.square().sum()])
def test_a_second_derivative_is_refused(push):
    q, k, v = (x.requires_grad_() for x in qkv())
    (grad,) = torch.autograd.grad(push(flash_attention(q, k, v)), q, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivative; use backend='sdpa'"):
        grad.square().sum().backward()


def test_forward_saves_nothing_of_the_size_of_the_scores():
    q, k, v = (x.requires_grad_() for x in qkv(t=64, s=64))
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()), lambda x: x):
        flash_attention(q, k, v)
    assert sorted(kept) == sorted([q.numel(), k.numel(), v.numel(), q.numel(), 2 * 6 * 64])


@pytest.mark.filterwarnings("ignore:.*autograd.function.Function'> should not be instantiated")
@pytest.mark.parametrize("backend", BACKENDS)
def test_torch_compile_takes_it_whole(backend, no_shape_hook):
    def run(q, k, v, lengths):
        rules = {"causal": True, "window": (3, 0), "key_lengths": lengths, "backend": backend}
        o, lse = flash_attention(q * 2, k, v, **rules, return_lse=True)
        return o.square().sum() + lse.where(lse > -math.inf, 0.0).sum()

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    mine, theirs = ([x.requires_grad_() for x in qkv()] for _ in range(2))
    lengths = torch.tensor([7, 3])
    got, want = compiled(*mine, lengths), run(*theirs, lengths)
    assert torch.equal(got, want)
    got.backward()
    want.backward()
    for a, b in zip(mine, theirs, strict=True):
        assert torch.equal(a.grad, b.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_operators_promise_what_they_give(dtype):
    q, k, v = qkv(dtype=dtype, d_value=24)
    lengths = torch.tensor([7, 3])
    rest = (lengths, 3, 0, 0.25, "tiles")
    test = torch.library.opcheck
    tests = ("test_schema", "test_faketensor")
    test(attention.forward_operator, (q, k, v, *rest), test_utils=tests)
    o, lse = attention.forward_operator(q, k, v, *rest)
    test(attention.backward_operator, (q, k, v, o, lse, o, lse * 0, *rest), test_utils=tests)


def test_by_itself_it_imports_no_triton():
    """Nor the machinery of torch.compile, which does."""
    program = """
        import sys, torch
        from plainformer.flash import flash_attention
        q = torch.randn(1, 2, 5, 4, requires_grad=True)
        flash_attention(q, q, q, causal=True).sum().backward()
        assert q.grad.isfinite().all()
        assert not {"triton", "torch._dynamo", "matplotlib"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


def test_without_triton_all_else_works(monkeypatch):
    monkeypatch.setattr(attention, "why_not", lambda q, v: "Triton is not installed (Linux: pip)")
    q, k, v = qkv()
    assert flash_attention(q, k, v).isfinite().all()
    with pytest.raises(ValueError, match=r"Triton is not installed .* backend='tiles' takes every"):
        flash_attention(q, k, v, backend="triton")


class OnGPU:
    """Enough of a tensor for the choice of a backend, where there is no GPU."""

    def __init__(self, width, dtype=torch.bfloat16, requires_grad=False):
        self.device, self.dtype, self.requires_grad = torch.device("cuda"), dtype, requires_grad
        self.shape = (1, 1, 1, width)


def choose(*options, **more):
    x = OnGPU(*options, **more)
    return attention._choose("auto", x, x, x, return_lse=False)


def test_on_a_gpu_the_choice_is_triton_and_what_it_cannot_do_is_said(no_shape_hook):
    assert choose(64) == choose(64, requires_grad=True) == choose(256) == "triton"
    assert choose(128, torch.float32, requires_grad=True) == "triton"
    with pytest.warns(UserWarning, match="up to 256 wide, got d_head=320 .* in tiles of PyTorch"):
        assert choose(320) == "tiles"
    with pytest.warns(UserWarning, match=r"take float16, .* got torch.float64: computed in tiles"):
        assert choose(64, torch.float64) == "tiles"
    with pytest.warns(UserWarning, match="backward, .* up to 128 wide, got 256: gradients are"):
        assert choose(256, requires_grad=True) == "triton"


@needs_interpreter
def test_heads_too_wide_for_the_kernels_backward_get_their_gradients_from_tiles(monkeypatch):
    monkeypatch.setattr(attention, "WIDEST_BACKWARD", 8)
    monkeypatch.setattr(attention, "triton_backward", None)
    with pytest.warns(UserWarning, match="up to 8 wide, got 16"):
        assert_agrees(public("triton"), Case(causal=True))


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"backend": "cuda"}, "backend must be one of auto, triton, tiles, sdpa, got 'cuda'"),
        ({"backend": "sdpa", "return_lse": True}, "PyTorch's attention does not return lse"),
        ({"window": (-1, 0)}, "got left=-1"),
        ({"scale": math.inf}, "scale must be finite"),
        ({"key_lengths": torch.tensor([3, 9])}, r"between 0 and s=7, got \[9\]"),
    ],
)
def test_what_cannot_be_is_refused(rules, says):
    with pytest.raises(ValueError, match=says):
        flash_attention(*qkv(), **rules)


@needs_interpreter
def test_what_the_kernels_cannot_do_is_refused():
    with pytest.raises(ValueError, match=r"take float16, .*, got torch\.float64"):
        flash_attention(*qkv(dtype=torch.float64), backend="triton")
    with pytest.raises(
        ValueError, match=r"up to 256 wide, got d_head=16 and d_value=257; backend="
    ):
        flash_attention(*qkv(d_value=257), backend="triton")


def test_without_the_interpreter_the_error_names_its_variable(monkeypatch):
    monkeypatch.setattr("plainformer.flash.launch.is_interpreted", lambda: False)
    with pytest.raises(ValueError, match="TRITON_INTERPRET=1 before triton is imported"):
        flash_attention(*qkv(), backend="triton")


def test_shapes_are_explained_to_readers(no_shape_hook):
    q, k, v = qkv()
    with pytest.raises(ValueError, match="q must have four axes"):
        flash_attention(q[0], k, v)
