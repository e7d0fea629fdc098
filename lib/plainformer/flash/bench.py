"""The kernels on a GPU, right first and then fast: `python -m plainformer.flash.bench`.

Output and gradients are compared with float64 before anything is timed; a wrong one ends it with 1.
Then come TFLOP/s beside PyTorch's attention, each of its backends by name, and flash_attn where it
is installed. `--sweep` looks for better tiles first. `--dry` walks the whole way on the processor,
through Triton's interpreter, with small sizes: its times mean nothing.
"""

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from plainformer.flash import launch
from plainformer.flash.attention import flash_attention
from plainformer.flash.correctness import RESULTS, mistakes
from plainformer.flash.launch import Blocks, triton_backward, triton_forward

SWEEP = {
    "forward": [(128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (64, 64, 4, 3)],
    "grad_kv": [(64, 64, 4, 1), (64, 64, 8, 2), (64, 128, 8, 1), (128, 64, 8, 1)],
    "grad_q": [(128, 64, 8, 2), (64, 64, 4, 2), (128, 64, 8, 3), (64, 128, 8, 2)],
}
PYTORCH = ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION")
FLOPS = {"forward": 4.0, "backward": 10.0}  # times b h n^2 d; half of it where causal


class Device:
    """Where it runs, how large, and how a call is timed."""

    def __init__(self, dry: bool):
        self.dry, self.name = dry, "cpu" if dry else "cuda"
        self.lengths = (16, 33) if dry else (512, 1024, 2048, 4096, 8192, 16384)
        self.widths = (16, 32) if dry else (64, 128)
        self.pytorch = ("FLASH_ATTENTION", "MATH") if dry else PYTORCH
        self.sweep = {k: v[:2] for k, v in SWEEP.items()} if dry else SWEEP
        self.title = "dry run" if dry else torch.cuda.get_device_name()

    def inputs(self, n: int, d: int) -> list[Tensor]:
        """16k positions and 2048 entries in all, as is usual; grad_o comes last."""
        b, h = (1, 1) if self.dry else (max(1, 16384 // n), 2048 // d)
        rng = torch.Generator(self.name).manual_seed(0)
        options = {"generator": rng, "device": self.name, "dtype": torch.bfloat16}
        return [torch.randn(b, h, n, d, **options) for _ in range(4)]

    def seconds(self, call: Callable) -> float:
        if self.dry:
            start = time.perf_counter()
            call()
            return time.perf_counter() - start
        from triton.testing import do_bench

        return do_bench(call, warmup=10, rep=60, return_mode="median") / 1000

    def matmul_rate(self) -> float:
        """What the device really multiplies: FLOP/s of two large matrices."""
        n = 64 if self.dry else 8192
        x, y = torch.randn(2, n, n, device=self.name, dtype=torch.bfloat16)
        return 2 * n**3 / self.seconds(lambda: x @ y)


def sweep(device: Device, until: float) -> dict:
    """The fastest tiles for each row of the table that is used here; until time is up."""
    found, arch = {}, launch.architecture(torch.device(device.name))
    for d in device.widths:
        q, k, v, push = device.inputs(device.lengths[-1], d)
        rules = {"window": (None, 0), "scale": d**-0.5}
        forward = partial(triton_forward, q, k, v, **rules)
        backward = partial(triton_backward, q, k, v, *forward(), push, **rules)
        for kernel, call, option in [
            ("forward", forward, "blocks"),
            ("grad_kv", backward, "kv_blocks"),
            ("grad_q", backward, "q_blocks"),
        ]:
            times = {}
            # What the table says comes first, so that little time never makes it worse.
            now = launch.blocks_for(arch, d, kernel, q.dtype)
            for blocks in dict.fromkeys([now, *(Blocks(*x) for x in device.sweep[kernel])]):
                if time.monotonic() > until:
                    break
                try:
                    times[blocks] = device.seconds(partial(call, **{option: blocks}))
                except Exception as error:  # too large for this device, most of the time
                    print(f"  {kernel} {d} {tuple(blocks)}: {type(error).__name__}")
            if times:
                found[arch, d, kernel] = min(times, key=times.get)
    return found


def ways(device: Device, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> dict[str, Callable]:
    """Ours and the others, as calls without arguments."""

    def sdpa(backend: str) -> Tensor:
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    found = {"ours": lambda: flash_attention(q, k, v, causal=causal, backend="triton")}
    found |= {name: lambda name=name: sdpa(name) for name in device.pytorch}
    if not device.dry and importlib.util.find_spec("flash_attn"):
        from flash_attn import flash_attn_func

        def theirs() -> Tensor:
            turned = (x.transpose(1, 2) for x in (q, k, v))
            return flash_attn_func(*turned, causal=causal).transpose(1, 2)

        found["flash_attn"] = theirs
    return found


def measure(device: Device, n: int, d: int, causal: bool) -> list[dict]:
    """One row forward and one backward: TFLOP/s of each way, None where it cannot."""
    *inputs, push = device.inputs(n, d)
    inputs = [x.requires_grad_() for x in inputs]
    work = inputs[0].numel() * n * (0.5 if causal else 1.0) / 1e12
    rows = [{"n": n, "d": d, "causal": causal, "direction": x, "tflops": {}} for x in FLOPS]
    for name, call in ways(device, *inputs, causal).items():
        try:
            o = call()
            back = partial(torch.autograd.grad, o, inputs, push, retain_graph=True)
            taken = device.seconds(call), device.seconds(back)
        except RuntimeError:  # PyTorch has no such backend for this device
            if name == "ours":
                raise
            taken = None, None
        for row, one in zip(rows, taken, strict=True):
            row["tflops"][name] = one and FLOPS[row["direction"]] * work / one
    return rows


def line(row: dict, rate: float) -> str:
    """A row as text: ours, its share of the matmul rate, and ours / theirs for each other way."""
    ours = row["tflops"]["ours"]
    text = f"{row['n']:>6} {row['d']:>4} {'causal' if row['causal'] else 'full':<6} "
    text += f"{row['direction']:<8} {ours:>9.3g} {ours * 1e12 / rate:>6.0%}"
    for name, theirs in list(row["tflops"].items())[1:]:
        text += f"  {name} " + (f"{theirs:.3g} ({ours / theirs:.2f}x)" if theirs else "-")
    return text


def plot(rows: list[dict], title: str, file: Path) -> None:
    from matplotlib.figure import Figure

    kinds = sorted({(row["d"], row["causal"]) for row in rows})
    figure = Figure(figsize=(4 * len(kinds), 6), layout="constrained")
    axes = figure.subplots(2, len(kinds), squeeze=False)
    for i, direction in enumerate(FLOPS):
        for ax, (d, causal) in zip(axes[i], kinds, strict=True):
            part = [
                r for r in rows if (r["d"], r["causal"], r["direction"]) == (d, causal, direction)
            ]
            for name in part[0]["tflops"]:
                speeds = [r["tflops"][name] or float("nan") for r in part]
                ax.plot([r["n"] for r in part], speeds, marker="o", label=name)
            ax.set(title=f"{direction}, d={d}{', causal' if causal else ''}", xlabel="n")
            ax.set_xscale("log", base=2)
    axes[0, 0].set_ylabel("TFLOP/s")
    axes[0, 0].legend(fontsize="small")
    figure.suptitle(title)
    figure.savefig(file)


def main(arguments: list[str] | None = None) -> int:
    """Check, then measure; 1 when a result is wrong."""
    start = time.monotonic()
    parser = argparse.ArgumentParser(prog="plainformer.flash.bench", description=__doc__)
    parser.add_argument("--budget", type=float, default=300, help="seconds, for all of it")
    parser.add_argument("--sweep", action="store_true", help="look for better tiles first")
    parser.add_argument("--dry", action="store_true", help="on the processor, to see that it runs")
    parser.add_argument("--out", type=Path, default=Path("build/flash"), help="folder to write to")
    options = parser.parse_args(arguments)
    if options.dry:
        os.environ.setdefault("TRITON_INTERPRET", "1")  # before the first import of triton
    elif not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU here; --dry runs it on the processor")
    device = Device(options.dry)
    print(device.title)
    if wrong := mistakes(device.name, longer=1 if device.dry else 10):
        print("WRONG, so nothing is timed:", *wrong, sep="\n  ")
        return 1
    print(f"right: {', '.join(RESULTS)}")
    rate = device.matmul_rate()
    print(f"matmul: {rate / 1e12:.3g} TFLOP/s in bfloat16")
    found = sweep(device, start + options.budget / 2) if options.sweep else {}
    launch.CONFIGS.update(found)  # for the rest of this run
    for row, blocks in found.items():
        print(f"    ({json.dumps(row)[1:-1]}): Blocks{tuple(blocks)},  # for CONFIGS in launch.py")
    rows, skipped = [], 0
    print(f"{'n':>6} {'d':>4} {'':<6} {'':<8} {'TFLOP/s':>9} of matmul; theirs (ours / theirs)")
    for d in device.widths:
        for causal in (True, False):
            for n in device.lengths:
                if rows and time.monotonic() - start > 0.9 * options.budget:
                    skipped += 1
                    continue
                rows += measure(device, n, d, causal)
                print(*(line(row, rate) for row in rows[-2:]), sep="\n", flush=True)
    if skipped:
        print(f"{skipped} cases left out: the budget of {options.budget:g} s is used up")
    options.out.mkdir(parents=True, exist_ok=True)
    table = [{"arch": a, "width": w, "kernel": k, "blocks": b} for (a, w, k), b in found.items()]
    report = {"device": device.title, "dry": device.dry, "torch": torch.__version__}
    report |= {"matmul_tflops": rate / 1e12, "rows": rows, "skipped": skipped, "sweep": table}
    (options.out / "flash.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    plot(rows, device.title, options.out / "flash.png")
    print(f"written: {options.out / 'flash.json'}, {options.out / 'flash.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
