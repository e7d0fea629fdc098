"""How large a step is, at every step."""

from plainformer.contracts import require_sizes


def warmup_inverse_sqrt(step: int, *, d_model: int, warmup_steps: int) -> float:
    r"""Learning rate that rises linearly, then falls as one over the square root of the step.

    $$ \mathrm{lr}(n) = d_{model}^{-1/2} \min\left(n^{-1/2},\; n\, w^{-3/2}\right) $$

    The two meet at n = w, where the rate is highest. With `warmup_steps=1` there is no rise: the
    first step is the largest.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), eq. 3. Often called the Noam schedule.
    Paper to code: step_num $n$ is `step`, warmup_steps $w$ is `warmup_steps`.
    Units: `step` counts optimiser updates from 1; the result is the rate itself, not a factor.
    Raises ValueError when `step` is below 1, where the formula divides by zero, or a size is.
    >>> warmup_inverse_sqrt(4000, d_model=512, warmup_steps=4000)
    0.0006987712429686843
    """
    if step < 1:
        raise ValueError(f"step counts from 1, got {step}; in a loop from 0, pass step + 1")
    require_sizes(d_model=d_model, warmup_steps=warmup_steps)
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
