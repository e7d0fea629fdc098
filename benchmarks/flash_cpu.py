"""Attention in tiles beside PyTorch's own and the plain one: processor time and memory, causal.

One thread; processor time, not time on the wall, and the least of rounds in turns, so that other
work on the machine does not count. Memory is the peak of a fresh process above what its inputs
take, results included. Wanted from 2048 on: at most 1.6 times PyTorch's time (better 1.35), at
least 3 times as fast as plain; at 8192 less than 40 MB.
"""

import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from plainformer.attention import dot_product_attention
from plainformer.flash import flash_attention
from plainformer.masks import causal_mask

N_HEADS, D_HEAD = 8, 64
LENGTHS = [512, 1024, 2048, 4096, 8192]
STATUS = Path("/proc/self/status")  # memory is read where Linux writes it

FORWARD = {
    "tiles": lambda q, k, v: flash_attention(q, k, v, causal=True, backend="tiles"),
    "sdpa": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "plain": lambda q, k, v: dot_product_attention(q, k, v, causal_mask(q.shape[-2])),
}


def inputs(length: int, gradients: bool = False) -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    made = [torch.randn(1, N_HEADS, length, D_HEAD, generator=g) for _ in range(3)]
    return [x.requires_grad_(gradients) for x in made]


def seconds(call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def least(calls: dict, rounds: int) -> dict[str, float]:
    for call in calls.values():
        call()
    taken = [{name: seconds(call) for name, call in calls.items()} for _ in range(rounds)]
    return {name: min(times[name] for times in taken) for name in calls}


def forward(length: int) -> dict[str, float]:
    x = inputs(length)
    calls = {
        name: lambda way=way: way(*x)
        for name, way in FORWARD.items()
        if name != "plain" or length <= 4096  # beyond, it needs gigabytes
    }
    return least(calls, rounds=max(3, 8192 // length))


def backward(length: int) -> dict[str, float]:
    x = inputs(length, gradients=True)
    outputs = {name: FORWARD[name](*x) for name in ("tiles", "sdpa")}
    push = torch.ones_like(x[0])
    calls = {
        name: lambda o=o: torch.autograd.grad(o, x, push, retain_graph=True)
        for name, o in outputs.items()
    }
    return least(calls, rounds=max(2, 4096 // length))


def peak() -> float:
    """The most memory that the process held since it was last reset, in MB."""
    (line,) = (x for x in STATUS.read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def print_memory(name: str, length: int) -> None:
    """In a process of its own."""
    FORWARD[name](*inputs(64))  # what the first call loads is not what a call needs
    x = inputs(length)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what there is
    before = peak()
    FORWARD[name](*x)
    print(peak() - before)


def memory(name: str, length: int) -> str:
    if not STATUS.exists() or (name == "plain" and length > 4096):
        return "-"
    command = [sys.executable, __file__, name, str(length)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return f"{float(done.stdout):.0f} MB"


def main() -> None:
    print(f"n_heads {N_HEADS}, d_head {D_HEAD}, causal, float32; processor time, ratios of it")
    heads = "tiles / sdpa", "plain / tiles", "backward tiles / sdpa"
    print(f"{'n':>6}", *(f"{x:>{len(x) + 2}}" for x in heads), *(f"{x:>9}" for x in FORWARD))
    for length in LENGTHS:
        there, back = forward(length), backward(length)
        plain = f"{there['plain'] / there['tiles']:.2f}" if "plain" in there else "-"
        ratios = (
            f"{there['tiles'] / there['sdpa']:.2f}",
            plain,
            f"{back['tiles'] / back['sdpa']:.2f}",
        )
        print(
            f"{length:>6}",
            *(f"{x:>{len(head) + 2}}" for x, head in zip(ratios, heads, strict=True)),
            *(f"{memory(name, length):>9}" for name in FORWARD),
            flush=True,
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) == 3:
        print_memory(sys.argv[1], int(sys.argv[2]))
    else:
        main()
