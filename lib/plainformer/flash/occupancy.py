"""What the kernels need of a GPU, found out without one: `python -m plainformer.flash.occupancy`.

Triton and the assembler that comes with it compile for any GPU on any machine. The report says how
much of a processor's memory and registers one program takes, how much of what should be in
registers had to be put elsewhere (spilled, and slow), and whether the matrix products go to the
tensor cores. It ends with 1 when something does not fit, or spills more than is known.

Compiling and interpreting cannot share a process, so the work is done in one of its own.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from plainformer.flash.launch import CONFIGS, DELTA, Blocks, blocks_for, padded

ARCHITECTURES = ("sm_80", "sm_90", "gfx942")
SHARED = {"sm_80": 163 * 1024, "sm_90": 227 * 1024, "gfx942": 64 * 1024}  # bytes for one program
# Bytes that are known to spill (by architecture, kernel, width, window): the gradients of wide keys
# and values stay in registers for the whole walk.
SPILLS = {
    ("sm_90", "grad_kv", 128, False): 128,
    ("sm_90", "grad_kv", 128, True): 32,
    ("sm_90", "forward", 128, True): 64,
    ("sm_80", "grad_kv", 128, True): 32,
}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiled:
    """One kernel for one architecture. Sizes are bytes for one program; counts are instructions."""

    arch: str
    kernel: str
    dtype: str  # bf16, fp16 or fp32
    width: int  # of heads and values
    window: bool  # with a left side; all are causal
    blocks: tuple[int, int, int, int]
    shared: int = 0
    registers: int = 0  # of one thread
    spilled: int = 0
    products: int = 0  # on tensor cores
    rounded: int = 0  # products in TF32, where float32 was asked for
    wide: int = 0  # products of 64 bits, in Triton's own language: places are computed with them
    error: str = ""

    def problem(self) -> str:
        """What is wrong with it, or nothing."""
        known = SPILLS.get((self.arch, self.kernel, padded(self.width), self.window), 0)
        if self.error:
            return self.error
        if self.shared > SHARED[self.arch]:
            return f"{self.shared} bytes of shared memory, and there are {SHARED[self.arch]}"
        if self.spilled > known:
            return f"spills {self.spilled} bytes, known are {known}"
        if self.kernel != "delta" and self.dtype != "fp32" and not self.products:
            return "no product on the tensor cores"
        return "rounds float32 to TF32" if self.rounded else ""


def standard(arch: str) -> list[Compiled]:
    """Every row of the table, the kernel without a row, float32, and windows at the widest."""
    rows = [(name, width) for a, width, name in CONFIGS if a == arch]
    cases = [wanted(arch, name, width) for name, width in rows]
    cases.append(wanted(arch, "delta", 64))
    for name in ("forward", "grad_kv", "grad_q"):
        cases.append(wanted(arch, name, 64, dtype="fp32"))
        cases.append(wanted(arch, name, 80, dtype="fp16", window=True))
    return cases


def wanted(
    arch: str,
    kernel: str,
    width: int,
    *,
    dtype: str = "bf16",
    window: bool = False,
    blocks: Blocks | None = None,
) -> Compiled:
    """What to compile, with the blocks of the table unless told otherwise."""
    if kernel == "delta":
        blocks = DELTA
    blocks = blocks or blocks_for(arch, width, kernel, DTYPES[dtype])
    options = {"arch": arch, "kernel": kernel, "width": width, "dtype": dtype, "window": window}
    return Compiled(**options, blocks=tuple(blocks))


def compile_all(cases: list[Compiled]) -> list[Compiled]:
    """The same cases with their numbers, or their errors; compiled in a fresh process."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "plainformer.flash.occupancy", "--compile"],
            input=json.dumps([asdict(case) for case in cases]),
            env={**environment, "TRITON_CACHE_DIR": cache},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise RuntimeError(f"the compiler did not finish:\n{done.stderr}")
    # JSON knows no tuples.
    return [Compiled(**row | {"blocks": tuple(row["blocks"])}) for row in json.loads(done.stdout)]


def _compile(case: dict) -> dict:
    """In the process of its own."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from plainformer.flash import triton_kernels

    kernel = getattr(triton_kernels, f"{case['kernel']}_kernel")
    queries, keys, warps, stages = case["blocks"]
    block = padded(case["width"])
    constants = {"D_HEAD": case["width"], "D_VALUE": case["width"], "UPCAST": False}
    constants |= {"BLOCK_D": block, "BLOCK_V": block, "BLOCK_M": queries, "BLOCK_N": keys}
    constants |= dict.fromkeys(("q_d", "k_d", "v_d", "g_d"), 1)  # as Triton does with a 1
    constants |= {"key_lengths": None, **({} if case["window"] else {"left": None})}
    signature, known, aligned = {}, {}, {}
    for place, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name], known[name] = "constexpr", constants[name]
        elif name in ("lse", "delta", "grad_lse"):
            signature[name] = "*fp32"
        elif name in ("q", "k", "v", "o", "grad_o", "grad_q", "grad_k", "grad_v"):
            signature[name] = f"*{case['dtype']}"
        else:
            signature[name] = "fp32" if name == "scale" else "i32"
        if signature[name].startswith("*") or re.fullmatch("[qkvg]_[bhts]", name):
            aligned[place,] = [["tt.divisibility", 16]]  # as tensors are; it decides how to load
    source = ASTSource(fn=kernel, signature=signature, constexprs=known, attrs=aligned)
    if case["arch"].startswith("sm_"):
        target = GPUTarget("cuda", int(case["arch"][3:]), 32)
    else:
        target = GPUTarget("hip", case["arch"], 64)
    options = {"num_warps": warps, "num_stages": stages}
    try:
        compiled = triton.compile(source, target=target, options=options)
    except Exception as error:  # whatever a compiler stumbles over is a line of the report
        # Its first line says where, its last one why.
        lines = f"{type(error).__name__}: {error}".splitlines()
        return case | {"error": " ... ".join(dict.fromkeys([lines[0], lines[-1]]))}
    read = _read_cuda if target.backend == "cuda" else _read_amd
    wide = len(re.findall(r"arith\.muli .*i64", compiled.asm["ttir"]))
    return case | {"shared": compiled.metadata.shared, "wide": wide, **read(compiled)}


def _read_cuda(compiled) -> dict:
    from triton.backends import nvidia

    tool = Path(nvidia.__file__).with_name("bin") / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        usage, code = (
            subprocess.run(
                [tool, flag, file.name], check=True, capture_output=True, text=True
            ).stdout
            for flag in ("-res-usage", "-sass")
        )
    registers, stack = map(int, re.search(r"REG:(\d+) STACK:(\d+)", usage).groups())
    return {
        "registers": registers,
        "spilled": stack,
        "products": len(re.findall(r"\bHG?MMA\b", code)),
        "rounded": compiled.asm["ptx"].count(".tf32"),
    }


def _read_amd(compiled) -> dict:
    code = compiled.asm["amdgcn"]
    registers, spilled = (
        int(re.search(rf"\.{name}: *(\d+)", code)[1]) for name in ("vgpr_count", "vgpr_spill_count")
    )
    return {
        "registers": registers,
        "spilled": 4 * spilled,
        "products": len(re.findall(r"\bv_mfma_f32\w+_b?f16", code)),
        "rounded": len(re.findall(r"\bv_mfma\w+_xf32", code)),
    }


def table(rows: list[Compiled]) -> str:
    """The report as text, one line for each kernel."""
    head = (
        "arch    kernel   dtype  width  window  tile     warps  stages  shared  registers  spilled"
    )
    lines = [f"{head}  products"]
    for row in rows:
        queries, keys, warps, stages = row.blocks
        tile, window = f"{queries}x{keys}", "left" if row.window else ""
        lines.append(
            f"{row.arch:<7} {row.kernel:<8} {row.dtype:<5} {row.width:>6}  {window:<6}  {tile:<8}"
            f"{warps:>6} {stages:>7} {row.shared:>7} {row.registers:>10} {row.spilled:>8}"
            f" {row.products:>9}  {row.problem()}".rstrip()
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print the report; 1 when a kernel has a problem."""
    parser = argparse.ArgumentParser(prog="plainformer.flash.occupancy", description=__doc__)
    parser.add_argument("--arch", default=",".join(ARCHITECTURES), help="for example sm_80,sm_90")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.compile:
        print(json.dumps([_compile(case) for case in json.load(sys.stdin)]))
        return 0
    archs = options.arch.split(",")
    if unknown := set(archs) - set(ARCHITECTURES):
        parser.error(f"--arch knows {', '.join(ARCHITECTURES)}, got {', '.join(sorted(unknown))}")
    rows = compile_all([case for arch in archs for case in standard(arch)])
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", "utf-8")
    return 1 if any(row.problem() for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
