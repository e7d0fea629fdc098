from itertools import combinations

import pytest
from matplotlib.colors import to_rgb

from plainformer.figures.palette import LINES, MARKERS

# What the three kinds of full colour blindness leave of linear red, green and blue
# (Machado, Oliveira and Fernandes 2009, severity 1).
SEEN = {
    "protanopia": [
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ],
    "deuteranopia": [
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ],
    "tritanopia": [
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ],
}


@pytest.mark.parametrize("eyes", SEEN)
def test_colour_blind_eyes_tell_the_lines_apart(eyes):
    def seen(colour):
        return [sum(a * b for a, b in zip(row, to_rgb(colour), strict=True)) for row in SEEN[eyes]]

    for one, other in combinations(LINES, 2):
        apart = sum((a - b) ** 2 for a, b in zip(seen(one), seen(other), strict=True)) ** 0.5
        assert apart > 0.1, f"{one} and {other} look alike"


def test_every_colour_has_a_marker_of_its_own():
    assert len(set(MARKERS)) == len(MARKERS) == len(LINES)
