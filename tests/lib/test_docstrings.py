"""The examples in the library's docstrings say what they give; here they are run."""

import doctest
import importlib
import pkgutil

import pytest

import plainformer

MODULES = [found.name for found in pkgutil.walk_packages(plainformer.__path__, "plainformer.")]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_gives_what_it_says(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} does not say what it is for"
    assert doctest.testmod(module).failed == 0


def test_examples_are_found_at_all():
    assert doctest.testmod(importlib.import_module("plainformer.masks")).attempted > 0
