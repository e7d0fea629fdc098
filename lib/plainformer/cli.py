"""The command `plainformer`: heavy imports wait inside its commands, so that --help is instant."""

import argparse
import sys
from pathlib import Path

from plainformer import __version__


def main(argv: list[str] | None = None) -> int:
    """Run one command; return 0 when it did its work, 1 when it could not, 2 for wrong usage."""
    args = _parser().parse_args(argv)
    try:
        return args.run(args)
    except (RuntimeError, ValueError, ImportError, OSError) as error:
        print(f"plainformer: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("plainformer: stopped", file=sys.stderr)
        return 1


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        """Complain in one line; the usage in full is one `--help` away."""
        self.exit(2, f"{self.prog}: {message}; try `{self.prog} --help`\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="plainformer", description="The library of the plainformer course.")
    parser.add_argument("--version", action="version", version=f"plainformer {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_show(commands)
    _add_assets(commands)
    return parser


def _add_show(commands) -> None:
    show = commands.add_parser("show", help="draw what a model does with a text")
    pictures = show.add_subparsers(title="pictures", metavar="PICTURE", required=True)
    parser = pictures.add_parser(
        "attention", help="who looks at whom, in one head of a pretrained encoder"
    )
    parser.add_argument("text", help='for example: "the bank by the river"')
    parser.add_argument("--layer", type=int, default=3, help="counted from 0 (default: 3)")
    parser.add_argument("--head", type=int, default=1, help="counted from 0 (default: 1)")
    parser.add_argument("--out", default="attention.png", help="default: attention.png")
    parser.set_defaults(run=show_attention, parser=parser)


def show_attention(args) -> int:
    """Draw the heat map of one head, and print its strongest links between words."""
    if not args.text.strip():
        args.parser.error('the text is empty; give some words, such as "the bank by the river"')
    out = Path(args.out)
    if not out.parent.is_dir():  # before the model is loaded: that takes seconds
        raise ValueError(f"there is no folder {out.parent} for the picture; make it first")
    if out.is_dir():
        raise ValueError(f"{out} is a folder; name a file in it, such as {out / 'attention.png'}")

    from plainformer.figures.heatmaps import attention_map
    from plainformer.inspection.links import strongest_links
    from plainformer.pretrained.encoder import Encoder

    tokens, maps = Encoder().attention(args.text)
    n_layers, n_heads = maps.shape[:2]
    for name, value, count in [("layer", args.layer, n_layers), ("head", args.head, n_heads)]:
        if not 0 <= value < count:
            args.parser.error(f"--{name} must lie between 0 and {count - 1}, got {value}")
    weights = maps[args.layer, args.head]
    names = _numbered(tokens)
    ax = attention_map(weights, names, names)
    ax.set_title(f"layer {args.layer}, head {args.head}")
    ax.figure.savefig(out)
    for query, key, weight in strongest_links(weights, names):
        print(f"{query:>12} -> {key:<12} {weight:.3f}")
    if names != tokens:
        print("a number in brackets says which token it is, counted from [CLS], which is 0")
    print(f"drawn in {out}: layer {args.layer}, head {args.head}; [CLS] and [SEP] not listed")
    return 0


def _numbered(tokens: list[str]) -> list[str]:
    """The tokens; one that occurs more than once carries its place, as in `the(1)`."""
    several = {token for token in tokens if tokens.count(token) > 1} - {"[CLS]", "[SEP]"}
    return [f"{token}({i})" if token in several else token for i, token in enumerate(tokens)]


def _add_assets(commands) -> None:
    parser = commands.add_parser(
        "assets", help="fetch the weights, vocabularies and texts that the chapters read"
    )
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--all", action="store_true", help="those of later chapters, too")
    scope.add_argument(
        "--verify", action="store_true", help="fetch nothing; reread every byte of what is needed"
    )
    parser.set_defaults(run=assets)


def assets(args) -> int:
    """Fetch or verify every asset that is wanted; one that fails does not stop the others."""
    from plainformer.data.assets import ASSETS, AssetError, fetch, verify

    failed = False
    for name, asset in ASSETS.items():
        if not (asset.needed_by or args.all):
            continue
        print(f"{name} {asset.version} ({asset.megabytes} MB, {asset.licence})", flush=True)
        try:
            where = verify(name) if args.verify else fetch(name, show=True)
            print(f"  ready in {where}", flush=True)
        except AssetError as error:
            print(f"plainformer: {error}", file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
