"""The command for a GPU, walked through without one, so that it runs when there is one."""

import json

import pytest
import torch

from plainformer.flash import bench, correctness, launch
from tests.lib.flash.test_mutants import mutant_of

needs_interpreter = pytest.mark.skipif(
    not launch.is_interpreted(),
    reason="There is a GPU here, so Triton compiles; its interpreter is not switched on.",
)


@pytest.fixture
def small(monkeypatch):
    """Two checks, and a table that may change."""
    monkeypatch.setattr(correctness, "CHECKS", correctness.CHECKS[:1] + correctness.CHECKS[3:4])
    monkeypatch.setattr(launch, "CONFIGS", dict(launch.CONFIGS))


@needs_interpreter
def test_dry_it_checks_sweeps_measures_and_writes(small, capsys, tmp_path):
    before = dict(launch.CONFIGS)
    assert bench.main(["--dry", "--sweep", "--out", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "flash.json").read_text())
    assert report["dry"]
    assert report["matmul_tflops"] > 0
    assert report["skipped"] == 0
    seen = {(r["n"], r["d"], r["causal"], r["direction"]) for r in report["rows"]}
    assert len(seen) == len(report["rows"]) == 2 * 2 * 2 * 2
    for row in report["rows"]:
        assert list(row["tflops"]) == ["ours", "FLASH_ATTENTION", "MATH"]
        assert all(speed > 0 for speed in row["tflops"].values())
    assert len(report["sweep"]) == 2 * 3
    new = {row: blocks for row, blocks in launch.CONFIGS.items() if row not in before}
    for row in report["sweep"]:
        assert new[row["arch"], row["width"], row["kernel"]] == tuple(row["blocks"])
    assert (tmp_path / "flash.png").read_bytes().startswith(b"\x89PNG")
    out = capsys.readouterr().out
    assert out.startswith("dry run\nright: o, lse, grad_q, grad_k, grad_v\n")
    assert "FLASH_ATTENTION" in out


@needs_interpreter
@pytest.mark.parametrize(
    ("line", "becomes", "says"),
    [
        ("total = total * keep_old", "total = total", "o: error"),
        ("k_sums * scale", "k_sums", "grad_k: error"),
        ("sums * scale, rows_ok", "sums, rows_ok", "grad_q: error"),
        ("v_sums, keys < s", "2 * v_sums, keys < s", "grad_v: error"),
        ("tl.log2(total)) * LN_2", "tl.log2(total))", "lse: error"),
    ],
)
def test_a_wrong_kernel_ends_it_with_1_and_nothing_is_timed(
    monkeypatch, capsys, tmp_path, line, becomes, says
):
    monkeypatch.setattr(correctness, "CHECKS", [(1, 1, 19, 83, 16, 16, {"causal": True})])
    monkeypatch.setattr(correctness, "DTYPES", (torch.float32,))
    # Narrow tiles: several of them, so that old sums must be scaled.
    monkeypatch.setattr(launch, "FLOAT32", launch.Blocks(16, 16, 4, 1))
    mutant = mutant_of(launch.kernels(), line, becomes, tmp_path)
    assert correctness.mistakes("cpu") == []
    monkeypatch.setattr(launch, "kernels", lambda: mutant)
    assert bench.main(["--dry", "--out", str(tmp_path / "out")]) == 1
    out = capsys.readouterr().out
    assert "WRONG, so nothing is timed" in out
    assert says in out
    assert not (tmp_path / "out").exists()


def test_nan_is_no_small_error():
    one = torch.ones(3)
    error, allowed = correctness._error(one * torch.nan, one, one, 1e-3)
    assert not error <= allowed
    error, allowed = correctness._error(one, one * -torch.inf, one, 1e-3)
    assert error > allowed


@needs_interpreter
def test_a_budget_that_is_used_up_is_said(small, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(bench, "mistakes", lambda *_, **__: [])
    assert bench.main(["--dry", "--budget", "0", "--sweep", "--out", str(tmp_path)]) == 0
    assert "7 cases left out: the budget of 0 s is used up" in capsys.readouterr().out
    report = json.loads((tmp_path / "flash.json").read_text())
    assert (len(report["rows"]), report["skipped"], report["sweep"]) == (2, 7, [])


@needs_interpreter
def test_a_backend_that_pytorch_lacks_is_a_dash(monkeypatch):
    device = bench.Device(dry=True)
    device.pytorch = ("OVERRIDEABLE",)

    def lacking(backend):
        raise RuntimeError("No available kernel")

    monkeypatch.setattr(bench, "sdpa_kernel", lacking)
    rows = bench.measure(device, 16, 16, causal=True)
    assert [row["tflops"]["OVERRIDEABLE"] for row in rows] == [None, None]
    assert bench.line(rows[0], 1e12).endswith("OVERRIDEABLE -")


def test_flops_are_counted_as_is_usual(monkeypatch):
    """4 b h n^2 d forward, 2.5 times that backward, half where causal."""
    device = bench.Device(dry=True)
    monkeypatch.setattr(device, "seconds", lambda call: 1.0)
    monkeypatch.setattr(bench, "ways", lambda d, q, k, v, causal: {"ours": lambda: q + k + v})
    forward, backward = bench.measure(device, 7, 16, causal=False)
    assert forward["tflops"]["ours"] == pytest.approx(4 * 7 * 7 * 16 / 1e12)
    assert backward["tflops"]["ours"] == pytest.approx(10 * 7 * 7 * 16 / 1e12)
    forward, _ = bench.measure(device, 7, 16, causal=True)
    assert forward["tflops"]["ours"] == pytest.approx(2 * 7 * 7 * 16 / 1e12)


def test_without_a_gpu_it_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        bench.main([])
    assert "PyTorch sees no GPU here; --dry runs it" in capsys.readouterr().err
