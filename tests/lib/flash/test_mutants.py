"""The edges are sharp: with one line of a backend broken, the edge that guards it fails.

Each mutant is a line of the source, what it becomes, and the edge that must notice.
"""

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from plainformer.flash import launch, semantics, tiled
from tests.lib.flash import edges
from tests.lib.flash.agreement import Results, kernels

TILED = [
    ("new.masked_fill(new == -math.inf, 0.0)", "new", edges.a_first_tile_that_some_rows_do_not_see),
    ("total.masked_fill_(total == 0, 1.0)", "pass", edges.a_query_that_sees_nothing),
    ("total.mul_(keep_old)", "total", edges.a_maximum_that_keeps_growing_or_shrinking),
    ("weighted.mul_(keep_old)", "weighted", edges.a_maximum_that_keeps_growing_or_shrinking),
    ("torch.maximum(largest, scores", "torch.minimum(largest, scores", edges.widths),
    ("scores.amax(dim=-1, keepdim=True)", "0 * largest", edges.very_negative_scores),
    ("lse_tile == -math.inf, math.inf", "lse_tile > 0, lse_tile", edges.a_query_that_sees_nothing),
    ("delta -= _behind", "delta += _behind", edges.widths),
    ("grad_q_tile.mul_(scale)", "grad_q_tile", edges.scales_of_all_kinds),
    ("grad_scores.sub_(delta)", "grad_scores", edges.widths),
    ("x.new_zeros(x.shape, dtype=exact)", "x.new_zeros(x.shape)", edges.half_precisions),
    ("x.new_zeros(x.shape,", "x.new_empty(x.shape,", edges.memory_that_nobody_cleared),
    ("torch.zeros_like(q_tile)", "torch.empty_like(q_tile)", edges.memory_that_nobody_cleared),
    ("if masked:  # before", "if not masked:  # before", edges.heads_that_share_keys),
    ("lengths[first]", "k.shape[2]", edges.padding_is_never_read),
    ("kv_heads.stop * n)", "kv_heads.start * n + 1)", edges.heads_that_share_keys),
    ("return x.reshape(", "return x.mT.reshape(", edges.widths),
    ("tile_high > all_high", "tile_high > high", edges.a_window_counts_its_keys),
    ("tile_low < all_low", "tile_low < low", edges.a_window_counts_its_keys),
    ("1, s - t, length", "1, 0, length", edges.causal_is_aligned_at_the_bottom_right),
    ("return torch.float64 if x.dtype ==", "return x.dtype if", edges.scores_beyond_float16),
    ("return torch.float64 if x.dtype ==", "return x.dtype if", edges.half_precisions),
]

SEMANTICS = [
    ("j >= i + shift - left", "j > i + shift - left", edges.a_window_counts_its_keys),
    ("j <= i + shift + right", "j < i + shift + right", edges.a_window_counts_its_keys),
    ("j <= i + shift + right", "j <= i + right", edges.causal_is_aligned_at_the_bottom_right),
]
TRITON = [
    ("    high = max(high, low)", "    #", edges.more_queries_than_keys),
    ("0.0, new)", "new, new)", edges.a_query_that_sees_nothing),
    ("total == 0, 1.0, total)", "total == 0, 0.0, total)", edges.a_query_that_sees_nothing),
    ("total = total * keep_old", "total = total", edges.a_maximum_that_keeps_growing_or_shrinking),
    ("weighted * keep_old[:, None]", "weighted", edges.a_maximum_that_keeps_growing_or_shrinking),
    ("if MASKED:  # before", "if False:  # before", edges.a_rest_of_keys_and_scores_far_below_zero),
    ("if MASKED:  # before", "if False:  # before", edges.a_window_and_scores_far_below_zero),
    ("(loaded == -INFINITY, INFINITY,", "(False, INFINITY,", edges.a_query_that_sees_nothing),
    ("in_text, v_ok, MASKED,", "in_text, v_ok, False,", edges.lengths_around_a_tile),
    ("in_text, d_ok, MASKED,", "in_text, d_ok, False,", edges.padding_is_never_read),
    ("q_t, rows_ok, d_ok, True,", "q_t, rows_ok, d_ok, False,", edges.lengths_around_a_tile),
    ("g_t, rows_ok, v_ok, True,", "g_t, rows_ok, v_ok, False,", edges.lengths_around_a_tile),
    ("MASK_D: tl.constexpr = D_HEAD != BLOCK_D", "MASK_D: tl.constexpr = False", edges.widths),
    ("MASK_V: tl.constexpr = D_VALUE != BLOCK_V", "MASK_V: tl.constexpr = False", edges.widths),
    ("batch, head // n, k_b", "batch, head % (h // n), k_b", edges.heads_that_share_keys),
    ("kv_head * n + member", "kv_head + member * (h // n)", edges.heads_that_share_keys),
    ("sums -= tl.load", "sums += tl.load", edges.widths),
    ("k_sums * scale", "k_sums", edges.scales_of_all_kinds),
    ("<= length, min(all_low", "<= s + BLOCK_N, min(all_low", edges.padding_is_never_read),
    ("        all_low = high\n", "        pass\n", edges.a_first_tile_that_some_rows_do_not_see),
    ("    if UPCAST:", "    if False:", edges.half_precisions),
    ("min(first + BLOCK_N, s) - 1", "first", edges.a_first_tile_that_some_rows_do_not_see),
    ("last, s - t, length", "last, 0, length", edges.the_last_query_alone_is_the_last_row_of_all),
    ("stride_row\n", "1\n", edges.memory_in_other_orders),
    ("[None, :] * stride_column", "[None, :]", edges.memory_in_other_orders),
]
# In a process of their own: these read whatever is there, or nothing that is there.
NARROW = [
    ("tl.cast(start, tl.int64) * k_s", "start * k_s", "k"),
    ("tl.cast(start, tl.int64) * v_s", "start * v_s", "v"),
    ("tl.cast(start, tl.int64) * q_t", "start * q_t", "q"),
    ("rows.to(tl.int64)[:, None]", "rows[:, None]", "q"),
]


def mutant_of(module, line: str, becomes: str, folder: Path):
    """The module with every occurrence of a line replaced."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert line in source, f"{line!r} is not in {module.__file__}: the mutant is out of date"
    file = folder / "mutant.py"
    file.write_text(source.replace(line, becomes), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"mutant_{abs(hash((line, becomes)))}", file)
    mutant = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = mutant
    spec.loader.exec_module(mutant)
    return mutant


def tiles_of(module, *tile):
    def run(x):
        rules = {"window": x.window, "key_lengths": x.key_lengths, "scale": x.scale, "tile": tile}
        o, lse = module.tiled_forward(x.q, x.k, x.v, **rules)
        grads = module.tiled_backward(x.q, x.k, x.v, o, lse, x.grad_o, x.grad_lse, **rules)
        return Results(o, lse, *grads)

    return run


def table(mutants):
    names = [f"{edge.__name__}: {line.strip()}" for line, _, edge in mutants]
    return pytest.mark.parametrize(("line", "becomes", "edge"), mutants, ids=names)


def assert_found_out(edge, backend):
    """By a wrong number, or by arithmetic that has none: not because the mutant cannot run."""
    with pytest.raises((AssertionError, RuntimeError, Exception)) as caught:
        edge(backend)
    causes = [caught.value]
    while causes[-1].__cause__:
        causes.append(causes[-1].__cause__)
    assert isinstance(causes[-1], (AssertionError, RuntimeWarning, RuntimeError)), causes


@table(TILED)
def test_tiles_with_a_broken_line_are_found_out(tmp_path, line, becomes, edge):
    assert_found_out(edge, tiles_of(mutant_of(tiled, line, becomes, tmp_path), 16, 7))


@table(SEMANTICS)
def test_a_wrong_definition_is_found_out(tmp_path, monkeypatch, line, becomes, edge):
    monkeypatch.setattr(tiled, "keep", mutant_of(semantics, line, becomes, tmp_path).keep)
    assert_found_out(edge, tiles_of(tiled, 16, 7))


@pytest.mark.skipif(not launch.is_interpreted(), reason="On a GPU, a mutant could do real harm.")
@table(TRITON)
def test_kernels_with_a_broken_line_are_found_out(tmp_path, monkeypatch, line, becomes, edge):
    mutant = mutant_of(launch.kernels(), line, becomes, tmp_path)
    monkeypatch.setattr(launch, "kernels", lambda: mutant)
    assert_found_out(edge, kernels(16, 32))


@pytest.mark.skipif(not launch.is_interpreted(), reason="On a GPU, a mutant could do real harm.")
def test_kernels_with_places_of_32_bits_are_found_out(tmp_path):
    program = """
        import os, sys
        from pathlib import Path
        from plainformer.flash import launch
        from tests.lib.flash.test_launch import far_apart
        from tests.lib.flash.test_mutants import NARROW, mutant_of
        healthy, folder = launch.kernels(), Path(sys.argv[1])
        for line, becomes, far in [("INFINITY =", "INFINITY =", "q"), *NARROW]:
            if os.fork() == 0:
                mutant = mutant_of(healthy, line, becomes, folder)
                launch.kernels = lambda: mutant
                far_apart(far)
                os._exit(0)
            print(os.wait()[1], file=sys.stderr)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), tmp_path]
    environment = {**os.environ, "PYTHONPATH": "."}
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    status = [int(line) for line in run.stderr.splitlines() if line.isdigit()]
    assert status[:1] == [0], f"the kernels as they are pass: {run.stderr}"
    assert len(status) == 1 + len(NARROW)
    assert all(status[1:]), list(zip(NARROW, status[1:], strict=True))
