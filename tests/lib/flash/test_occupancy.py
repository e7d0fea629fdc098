"""The kernels are compiled for GPUs that are not here, in a process without the interpreter."""

import json

import pytest

from plainformer.flash import occupancy
from plainformer.flash.launch import INSTALLED, Blocks
from plainformer.flash.occupancy import Compiled, compile_all, standard, wanted

KERNELS = ("forward", "grad_kv", "grad_q", "delta")
needs_triton = pytest.mark.skipif(
    not INSTALLED, reason="Triton is not installed, nor its compiler."
)


@pytest.fixture(scope="module")
def compiled():
    """A row of the report for each of `standard`, less what is slow and shows nothing new."""
    cases = [*standard("sm_90"), *(c for c in standard("sm_80") if c.dtype == "bf16")]
    cases += [wanted("gfx942", name, 64) for name in ("forward", "grad_kv", "grad_q")]
    return compile_all(cases)


def rows(compiled, **wanted):
    return [row for row in compiled if all(getattr(row, k) == v for k, v in wanted.items())]


@needs_triton
def test_every_kernel_compiles_and_has_no_problem(compiled):
    assert {(row.arch, row.kernel) for row in compiled} >= {
        (arch, kernel) for arch in ("sm_80", "sm_90") for kernel in KERNELS
    }
    assert {row.problem() for row in compiled} == {""}, occupancy.table(compiled)


@needs_triton
def test_nothing_spills_but_the_gradients_of_wide_keys(compiled):
    spilling = {(row.arch, row.kernel, row.width) for row in compiled if row.spilled}
    plain = [row for row in compiled if not row.window]
    assert {(row.arch, row.kernel, row.width) for row in plain if row.spilled} == {
        ("sm_90", "grad_kv", 128)
    }
    assert spilling <= {
        ("sm_90", "grad_kv", 128),
        ("sm_90", "grad_kv", 80),
        ("sm_90", "forward", 80),
    }


@needs_triton
def test_products_are_on_the_tensor_cores(compiled):
    for row in compiled:
        exact = row.dtype == "fp32" or row.kernel == "delta"
        assert (row.products == 0) == exact, row


@needs_triton
def test_float32_is_not_rounded_on_the_way(compiled):
    """triton 5895: an error a thousand times larger, that no processor shows."""
    assert len(rows(compiled, dtype="fp32")) == 3
    assert all(row.rounded == 0 for row in compiled)


@needs_triton
def test_places_are_computed_in_64_bits(compiled):
    """One product for each axis of each tensor, and one for each step of a loop."""
    least = {"forward": 9, "grad_kv": 12, "grad_q": 12, "delta": 4}
    for row in compiled:
        assert row.wide >= least[row.kernel], row


def test_problems_are_named():
    row = wanted("sm_90", "forward", 64)
    fine = {"registers": 200, "products": 8}

    def but(**changes):
        fields = {name: getattr(row, name) for name in Compiled.__slots__}
        return Compiled(**{**fields, **fine, **changes}).problem()

    assert but() == ""
    assert but(spilled=8) == "spills 8 bytes, known are 0"
    assert but(products=0) == "no product on the tensor cores"
    assert but(shared=2**18) == "262144 bytes of shared memory, and there are 232448"
    assert but(dtype="fp32", products=0, rounded=2) == "rounds float32 to TF32"
    assert but(error="CompilationError: no") == "CompilationError: no"


def test_the_report_is_printed_written_and_its_end_tells_the_truth(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(occupancy, "compile_all", lambda cases: cases)
    file = tmp_path / "report.json"
    assert occupancy.main(["--arch", "sm_80", "--json", str(file)]) == 1  # no product anywhere
    assert len(json.loads(file.read_text())) == len(standard("sm_80"))
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith("arch    kernel")
    assert "sm_80   forward  bf16      64" in out
    assert "no product on the tensor cores" in out
    monkeypatch.setattr(occupancy, "standard", lambda arch: [wanted(arch, "delta", 64)])
    assert occupancy.main(["--arch", "sm_80,sm_90"]) == 0


def test_an_architecture_that_is_not_known_is_refused(capsys):
    with pytest.raises(SystemExit):
        occupancy.main(["--arch", "sm_70"])
    assert "--arch knows sm_80, sm_90, gfx942, got sm_70" in capsys.readouterr().err


@needs_triton
def test_a_compiler_that_fails_is_a_line_of_the_report():
    (row,) = compile_all([wanted("sm_90", "forward", 64, blocks=Blocks(17, 64, 4, 1))])
    assert "17" in row.error or "power of 2" in row.error
    assert row.problem() == row.error
