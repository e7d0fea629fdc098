"""Answers to the example chapter, written differently from its source."""

RIGHT = {
    "90-double": {"sum": "def double(x):\n    return x + x\n"},
    "90-row-means": {"sum": "def row_means(x):\n    return x.sum(dim=1) / x.shape[1]\n"},
}

WRONG = {
    "90-double": {"square": ("def double(x):\n    return x * x\n", "expected 6, got 9")},
    "90-row-means": {"columns": ("def row_means(x):\n    return x.mean(dim=0)\n", "expected")},
}
