import torch

from plainformer.seeding import generator


def test_the_same_seed_gives_the_numbers_that_torch_gives_for_it():
    torch.manual_seed(7)
    assert torch.equal(torch.rand(11, generator=generator(7)), torch.rand(11))


def test_another_seed_gives_other_numbers():
    one, other = (torch.rand(11, generator=generator(seed)) for seed in (5, 7))
    assert not torch.equal(one, other)


def test_drawing_leaves_the_global_stream_alone():
    torch.manual_seed(3)
    want = torch.rand(5)
    torch.manual_seed(3)
    torch.rand(13, generator=generator(2))
    assert torch.equal(torch.rand(5), want)
