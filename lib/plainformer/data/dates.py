"""Dates as people write them, and as ISO 8601 writes them: a task with one right answer.

The table is ours. A day has about thirty ways to be written here, and no text stands for two days:
a dot between numbers means the day first, a stroke the month first, a hyphen behind the year's four
digits the month next; a year always has four digits. A month's name must mean the same month
wherever it occurs. That keeps Croatian out: its listopada is October, that of Polish November.
"""

from collections.abc import Sequence
from datetime import date, timedelta

import torch

from plainformer.contracts import require_sizes
from plainformer.tokenizers.chars import CharTokenizer

FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
_EVERY = 11  # one day in so many is held out

_MONTHS = {
    "Czech": "ledna února března dubna května června července srpna září října listopadu prosince",
    "Danish": "januar februar marts april maj juni juli august september oktober november december",
    "Dutch": (
        "januari februari maart april mei juni juli augustus september oktober november december"
    ),
    "English": (
        "January February March April May June July August September October November December"
    ),
    "English, short": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "Finnish": (
        "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta "
        "syyskuuta lokakuuta marraskuuta joulukuuta"
    ),
    "French": (
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
    ),
    "German": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "Greek": (
        "Ιανουαρίου Φεβρουαρίου Μαρτίου Απριλίου Μαΐου Ιουνίου Ιουλίου Αυγούστου Σεπτεμβρίου "
        "Οκτωβρίου Νοεμβρίου Δεκεμβρίου"
    ),
    "Hungarian": (
        "január február március április május június július augusztus szeptember október november "
        "december"
    ),
    "Italian": (
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
        "dicembre"
    ),
    "Polish": (
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października "
        "listopada grudnia"
    ),
    "Portuguese": (
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"
    ),
    "Russian": (
        "января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
    ),
    "Spanish": (
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
    ),
    "Swedish": (
        "januari februari mars april maj juni juli augusti september oktober november december"
    ),
    "Turkish": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",  # noqa: RUF001
}
# d and m are plain numbers, dd and mm have two digits, y has four, name is the month's.
STYLES = {
    "Chinese, Japanese": "{y}年{m}月{d}日",
    "Czech": "{d}. {name} {y}",
    "Danish": "{d}. {name} {y}",
    "Dutch": "{d} {name} {y}",
    "Dutch, numbers": "{d}-{m}-{y}",
    "English": "{d} {name} {y}",
    "English, American": "{name} {d}, {y}",
    "English, short": "{name} {d}, {y}",
    "English, short, day first": "{d} {name} {y}",
    "Finnish": "{d}. {name} {y}",
    "French": "{d} {name} {y}",
    "German": "{d}. {name} {y}",
    "German, numbers": "{d}.{m}.{y}",
    "German, two digits": "{dd}.{mm}.{y}",
    "Greek": "{d} {name} {y}",
    "Hungarian": "{y}. {name} {d}.",
    "Hungarian, numbers": "{y}. {mm}. {dd}.",
    "Italian": "{d} {name} {y}",
    "Japanese, numbers": "{y}/{mm}/{dd}",
    "Korean": "{y}년 {m}월 {d}일",
    "Polish": "{d} {name} {y}",
    "Portuguese": "{d} de {name} de {y}",
    "Russian": "{d} {name} {y} г.",  # noqa: RUF001
    "Spanish": "{d} de {name} de {y}",
    "Swedish": "{d} {name} {y}",
    "Turkish": "{d} {name} {y}",
    "United States, numbers": "{m}/{d}/{y}",
    "United States, two digits": "{mm}/{dd}/{y}",
    "without separators": "{y}{mm}{dd}",
}


def written(day: date, style: str) -> str:
    """The day in one of the `STYLES`.

    Raises ValueError for a style that is not there, or a year that has not four digits.
    >>> written(date(2026, 3, 5), "German"), written(date(2026, 3, 5), "United States, numbers")
    ('5. März 2026', '3/5/2026')
    """
    if style not in STYLES:
        raise ValueError(f"style must be one of {', '.join(map(repr, STYLES))}, got {style!r}")
    if day.year < 1000:
        raise ValueError(f"a year must have four digits, got {day.year}; take one from 1000 on")
    names = _months(style)
    return STYLES[style].format(
        d=day.day,
        dd=f"{day.day:02}",
        m=day.month,
        mm=f"{day.month:02}",
        y=day.year,
        name=names[day.month - 1] if names else "",
    )


def dates(
    b: int,
    generator: torch.Generator,
    *,
    held_out: bool = False,
    styles: Sequence[str] = tuple(STYLES),
) -> list[tuple[str, str]]:
    """Draw `b` days from 1900 to 2099, each in one of the styles, as pairs (written, ISO).

    Every eleventh day is held out: it is drawn with `held_out` and never without, in no style.
    Raises ValueError when `b` is below 1, or a style is not there.
    >>> dates(2, torch.Generator().manual_seed(0))
    [('8/14/1973', '1973-08-14'), ('January 26, 1924', '1924-01-26')]
    """
    require_sizes(b=b, styles=len(styles))
    n_groups = (LAST - FIRST).days // _EVERY  # whole groups of eleven days
    groups, places, chosen = (
        torch.randint(low, high, (b,), generator=generator).tolist()
        for low, high in ((0, n_groups), (1, _EVERY), (0, len(styles)))
    )
    days = [
        FIRST + timedelta(days=_EVERY * group + (0 if held_out else place))
        for group, place in zip(groups, places, strict=True)
    ]
    return [(written(day, styles[i]), day.isoformat()) for day, i in zip(days, chosen, strict=True)]


def date_chars() -> CharTokenizer:
    """A tokenizer for every character that a date can be written with, here or in ISO 8601."""
    samples = [written(date(2000, month, 10), style) for style in STYLES for month in range(1, 13)]
    return CharTokenizer([*samples, "0123456789-"])


def _months(style: str) -> list[str]:
    """The names that go with a style: those of its language, or of the style itself."""
    short = "English, short" if style.startswith("English, short") else style.split(",")[0]
    return _MONTHS.get(short, "").split()
