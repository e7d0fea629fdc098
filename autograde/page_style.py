"""What the pages that the grader writes have in common: one frame, one style, and no script.

A page stands alone: it can be mailed, printed and read offline, in the dark and on a telephone.
"""

FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fff; --soft: #f2f2f2; --line: #767676;
  --good: #1a6b33; --bad: #a32020; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #161616; --soft: #262626;
  --line: #8c8c8c; --good: #7fd197; --bad: #ff9d94; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .25rem; }
.sum { font-size: 1.25rem; font-weight: 600; }
ul.tests { list-style: none; padding: 0; }
ul.tests > li { border-left: .25rem solid var(--line); padding: .1rem .75rem; margin: .6rem 0; }
ul.tests > li.pass { border-color: var(--good); }
ul.tests > li.missed { border-color: var(--bad); }
.pass > strong { color: var(--good); } .missed > strong { color: var(--bad); }
pre { background: var(--soft); padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media print { body { background: none; } }
"""


def whole_page(title: str, body: str, more_style: str = "") -> str:
    """A page with this body. Both are HTML: whatever is not ours has been escaped before."""
    return FRAME.format(title=title, style=STYLE + more_style, body=body)
