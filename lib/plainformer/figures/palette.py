"""Colours that colour-blind readers can tell apart, on the white card behind every figure."""

# Okabe and Ito 2008 (Color Universal Design), darkest first, without the yellow that fades on white
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P")  # so that lines differ without any colour, too

INK = "#000000"
PAPER = "#FFFFFF"
GRID = "#DDDDDD"
