import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from plainformer.training.schedules import warmup_inverse_sqrt


@pytest.mark.parametrize(
    ("step", "want"), [(1, 1.746928e-7), (4000, 6.987712e-4), (100_000, 1.397542e-4)]
)
def test_the_rates_of_the_paper(step, want):
    """d_model 512, 4000 steps of warm-up; 512 ** -0.5 is 0.0441942, 4000 ** -1.5 is 3.95285e-6."""
    got = warmup_inverse_sqrt(step, d_model=512, warmup_steps=4000)
    assert got == pytest.approx(want, rel=1e-6)


@given(d_model=st.integers(1, 4096), warmup=st.integers(1, 10**5), step=st.integers(1, 10**6))
def test_it_rises_by_equal_amounts_then_falls_with_the_root(d_model, warmup, step):
    rate = warmup_inverse_sqrt(step, d_model=d_model, warmup_steps=warmup)
    first = warmup_inverse_sqrt(1, d_model=d_model, warmup_steps=warmup)
    peak = warmup_inverse_sqrt(warmup, d_model=d_model, warmup_steps=warmup)
    assert peak == pytest.approx((d_model * warmup) ** -0.5)
    want = step * first if step <= warmup else peak * (warmup / step) ** 0.5
    assert rate == pytest.approx(want)


def test_agrees_with_a_scheduler_of_torch():
    """LambdaLR counts from 0 and gives a factor; with a base rate of 1 the factor is the rate."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    rate = lambda n: 7**-0.5 * min((n + 1) ** -0.5, (n + 1) * 5**-1.5)  # noqa: E731
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    for step in range(1, 14):
        want = scheduler.get_last_lr()[0]
        assert warmup_inverse_sqrt(step, d_model=7, warmup_steps=5) == pytest.approx(want)
        optimizer.step(), scheduler.step()


def test_steps_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match=r"step counts from 1, got 0; .* pass step \+ 1"):
        warmup_inverse_sqrt(0, d_model=512, warmup_steps=4000)
    with pytest.raises(ValueError, match="warmup_steps must be at least 1, got 0"):
        warmup_inverse_sqrt(1, d_model=512, warmup_steps=0)
