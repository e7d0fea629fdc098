"""A tiny course, for tests of the builder that need a chapter nobody will rewrite."""

from pathlib import Path

from autograde.build import release
from autograde.chapters import Course

TOC = """\
format: jb-book
root: index
parts:
  - caption: Start
    chapters:
      - file: pages/setup
      - file: chapters/90-sample
"""

CHAPTER = '''\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

(ch-sample)=
# A sample chapter

How far is it from $a$ to $b$ in one step? As far as $\\lvert a - b \\rvert$
{cite:p}`one2001`, and

$$ \\sum_{i=1}^{3} i = 6. $$

```{code-cell}
---
role: setup
---
import math
```

```{code-cell}
---
mystnb: {image: {alt: "A rising line"}, figure: {caption: "Notice that the line rises."}}
tags: [hide-input]
---
import matplotlib.pyplot as plt

figure, axis = plt.subplots(figsize=(5, 2.5))
axis.plot([1, 2, 3]);
```

+++

## Practise

+++

(ex-90-distance)=
### Exercise: Distance

Return the distance between two numbers.

```{code-cell}
---
role: exercise
exercise: 90-distance
tier: core
title: Distance
minutes: 5
---
def distance(a, b):
    """How far a is from b, as a number that is never negative."""
    ### BEGIN SOLUTION
    far_apart = math.copysign(a - b, 1.0)
    return far_apart
    ### END SOLUTION
```

```{code-cell}
---
role: test
test: 90-distance-by-hand
points: 1
---
"""Two numbers that you can check by hand."""
assert distance(3, 5) == 2
### BEGIN HIDDEN TESTS
assert distance(1234.5, 234.5) == 1000.0
### END HIDDEN TESTS
```

```{code-cell}
---
role: test
test: 90-distance-order
points: 2
---
"""The order does not matter."""
assert distance(5, 3) == distance(3, 5)
```

+++ {"role": "hint", "exercise": "90-distance", "hint": 1}

Which function forgets the *sign*?

+++ {"role": "hint", "exercise": "90-distance", "hint": 2}

$\\lvert x \\rvert$ is `abs(x)`.

+++

### Exercise: Why never negative?

Say it in one sentence.

+++ {"role": "written", "exercise": "90-why", "points": 3, "tier": "more", \
"title": "Why?", "minutes": 4}

### BEGIN SOLUTION
A distance is a **length**, and $\\lvert x \\rvert \\ge 0$ for every number.
### END SOLUTION
'''


def make_course(root: Path) -> Path:
    """Write the course under `root`, released notebook included; return `root`."""
    files = {
        "_toc.yml": TOC,
        "_config.yml": "execute: {}\nsphinx: {config: {solutions: true}}\n",
        "index.md": "# Sample\n",
        "pages/setup.md": "# Setup\n",
        "_static/course.css": "",
        "references.bib": "@book{one2001, author={Ann One}, title={One}, year={2001}}\n",
        "lib/plainformer/__init__.py": '"""A library."""\n',
        "requirements.lock": "torch==2.13.0\n",
        "solutions/90-sample.md": CHAPTER,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    release("90-sample", Course(root))
    return root
