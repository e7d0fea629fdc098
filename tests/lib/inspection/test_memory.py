import gc

import torch

from plainformer.attention import dot_product_attention
from plainformer.inspection import MemoryCount


def test_tensors_count_as_long_as_they_live():
    with MemoryCount() as count:
        first = torch.zeros(7, 11)  # 77 entries of 4 bytes
        second = first + 1
        del first
        gc.collect()
        third = second * 2  # takes the place of the first
    assert third.shape == (7, 11)
    assert (count.peak, count.largest) == (2 * 77 * 4, 77)


def test_views_and_results_in_place_are_not_counted_again():
    x = torch.zeros(7, 11)
    with MemoryCount() as count:
        x.add_(1)
        rows = x.T[2:5].unsqueeze(0)
    assert rows.shape == (1, 3, 7)
    assert (count.peak, count.largest) == (0, 0)


def test_the_width_of_a_number_counts():
    with MemoryCount() as count:
        kept = [torch.zeros(13, dtype=torch.bool), torch.zeros(13, dtype=torch.float64)]
    assert len(kept) == 2
    assert count.peak == 13 + 13 * 8


def test_attention_holds_tables_of_all_pairs():
    q, k = torch.zeros(101, 5), torch.zeros(103, 5)
    with MemoryCount() as count:
        dot_product_attention(q, k, k)
    assert count.largest == 101 * 103
    assert 101 * 103 * 4 <= count.peak < 3 * 101 * 103 * 4


def test_a_backward_pass_counts_too():
    x = torch.zeros(17, requires_grad=True)
    with MemoryCount() as count:
        (x * 2).sum().backward()
    assert x.grad.eq(2).all()
    assert count.largest == 17
    assert 17 * 4 <= count.peak <= 3 * 17 * 4
