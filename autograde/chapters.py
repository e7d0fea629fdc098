"""Which chapters there are, and where their files lie. Their order is `_toc.yml`'s alone."""

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent


class UsageError(ValueError):
    """A command was called with something that does not exist: exit status 2."""


class UnknownChapter(UsageError):
    """A chapter was asked for that the table of contents does not have."""


@dataclass(frozen=True, slots=True)
class Course:
    """A course folder: `_toc.yml`, `solutions/`, `chapters/`, `tests/answers/`.

    `overlay` is a folder outside it, with tests that one class alone is judged by.
    """

    root: Path = ROOT
    overlay: Path | None = None

    def slugs(self) -> list[str]:
        """The written chapters, in the order of the book: `["00-warm-up", "02-attention", ...]`."""
        toc = yaml.safe_load((self.root / "_toc.yml").read_text(encoding="utf-8"))
        files = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
        return [Path(file).stem for file in files if file.startswith("chapters/")]

    def resolve(self, name: str) -> str:
        """The slug meant by `02`, `2`, `02-attention` or a path to one of the chapter's files.

        Raises UnknownChapter when the table of contents has no such chapter.
        """
        stem = Path(name).stem
        for slug in self.slugs():
            number = slug.split("-")[0]
            if stem in (slug, number) or (stem.isdecimal() and int(stem) == int(number)):
                return slug
        raise UnknownChapter(f"there is no chapter {name!r}; {self.written()}")

    def guess(self, name: str) -> str | None:
        """The chapter that a file or folder of this name is most likely meant for, if any.

        `2-attention` and `02-attention (1).ipynb` go by their number, `My Attention` by its word.
        """
        number = re.match(r"\d{1,4}", name)
        for slug in self.slugs():
            ours, _, words = slug.partition("-")
            if int(number[0]) == int(ours) if number else words in name.lower():
                return slug
        return None

    def written(self) -> str:
        """The end of a message: which chapters there are."""
        return f"written chapters: {', '.join(self.slugs()) or 'none yet'}"

    def chosen(self, names: list[str]) -> list[str]:
        """The slugs meant by `names`, or all of them when none is given."""
        return [self.resolve(name) for name in names] if names else self.slugs()

    def source(self, slug: str) -> Path:
        return self.root / "solutions" / f"{slug}.md"

    def own_tests(self, slug: str) -> Path | None:
        """The overlay's file for this chapter, if there is one."""
        path = self.overlay / f"{slug}.md" if self.overlay else None
        return path if path and path.exists() else None

    def notebook(self, slug: str) -> Path:
        return self.root / "chapters" / f"{slug}.ipynb"

    def answers(self, slug: str) -> Path:
        return self.root / "tests" / "answers" / f"{slug.replace('-', '_')}.py"
