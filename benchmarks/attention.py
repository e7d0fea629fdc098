"""Our dot-product attention beside PyTorch's: time, as a ratio of one run.

The library is written to be read; this says what the clarity costs. Both run in turns in one
process, on one thread; the ratio of medians is printed.
"""

import statistics
import time

import torch
import torch.nn.functional as F

from plainformer.attention import dot_product_attention

ROUNDS = 15


def seconds(call, *inputs) -> float:
    start = time.perf_counter()
    call(*inputs)
    return time.perf_counter() - start


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'n_heads':>8} {'t = s':>6} {'d_head':>7} {'ours / torch (median time)':>28}")
    for n_heads, length, d_head in [(8, 64, 64), (8, 256, 64), (8, 1024, 64), (2, 1024, 128)]:
        g = torch.Generator().manual_seed(0)
        q, k, v = (torch.randn(1, n_heads, length, d_head, generator=g) for _ in range(3))
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(seconds(dot_product_attention, q, k, v))
            theirs.append(seconds(F.scaled_dot_product_attention, q, k, v))
        ratio = statistics.median(ours) / statistics.median(theirs)
        print(f"{n_heads:>8} {length:>6} {d_head:>7} {ratio:>28.2f}")


if __name__ == "__main__":
    main()
