"""Attention to everything beside attention to a window and linear attention: time against length.

All are causal and run in turns in one process, on one thread; ratios of medians are printed. With
the length doubled, a quadratic cost is four times as high, a linear one twice.
"""

import statistics
import time

import torch

from plainformer.attention import (
    causal_linear_attention,
    dot_product_attention,
    local_attention,
)
from plainformer.masks import causal_mask

ROUNDS = 7
LENGTHS = [256, 512, 1024, 2048, 4096]
N_HEADS, D_HEAD, WINDOW = 2, 64, 128

WAYS = {
    "dense": lambda q, k, v: dot_product_attention(q, k, v, causal_mask(q.shape[-2])),
    "local": lambda q, k, v: local_attention(q, k, v, left=WINDOW - 1),
    "linear": causal_linear_attention,
}


def seconds(call, *inputs) -> float:
    start = time.perf_counter()
    call(*inputs)
    return time.perf_counter() - start


def medians(length: int) -> dict[str, float]:
    g = torch.Generator().manual_seed(0)
    inputs = [torch.randn(1, N_HEADS, length, D_HEAD, generator=g) for _ in range(3)]
    taken = {name: [] for name in WAYS}
    for _ in range(ROUNDS):
        for name, attend in WAYS.items():
            taken[name].append(seconds(attend, *inputs))
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    torch.set_num_threads(1)
    print(f"n_heads {N_HEADS}, d_head {D_HEAD}, window {WINDOW}; median times")
    beside = "".join(f"{f'dense / {name}':>16}" for name in ("local", "linear"))
    growth = "".join(f"{f'{name}: n / half':>18}" for name in WAYS)
    print(f"{'n':>6}{beside}{growth}")
    before = None
    for length in LENGTHS:
        now = medians(length)
        line = "".join(f"{now['dense'] / now[name]:>16.2f}" for name in ("local", "linear"))
        if before is not None:
            line += "".join(f"{now[name] / before[name]:>18.2f}" for name in WAYS)
        print(f"{length:>6}{line}")
        before = now


if __name__ == "__main__":
    main()
