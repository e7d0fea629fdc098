"""Data from outside: pinned assets."""

from plainformer.data.assets import ASSETS, Asset, AssetError, fetch, folder, path, verify

__all__ = ["ASSETS", "Asset", "AssetError", "fetch", "folder", "path", "verify"]
