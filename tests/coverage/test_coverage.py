"""Each claim that a chapter covers is said in its source, in words that stand there."""

from pathlib import Path

import pytest
import yaml

from autograde.chapters import Course

HERE = Path(__file__).parent
COURSE = Course()
FILES = sorted(HERE.glob("*.yml"))


def plain(text: str) -> str:
    return " ".join(text.split()).lower()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_chapter_says_what_it_claims_to_cover(file):
    said = plain(COURSE.source(file.stem).read_text(encoding="utf-8"))
    missing = [
        f"{entry['claim']}: {entry['says']!r}"
        for entry in yaml.safe_load(file.read_text(encoding="utf-8"))
        if "says" in entry and plain(entry["says"]) not in said
    ]
    assert missing == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_claim_has_a_phrase_or_another_chapter_once(file):
    entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    claims = [entry["claim"] for entry in entries]
    assert sorted(claims) == sorted(set(claims))
    for entry in entries:
        assert ("says" in entry) != ("chapter" in entry), entry
        assert "chapter" not in entry or entry.get("why"), entry
        assert "says" not in entry or len(entry["says"].split()) >= 3, entry
