import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close as close

from plainformer.attention.dot_product import attention_weights
from plainformer.data.assets import AssetError
from plainformer.pretrained.encoder import Encoder

LAW = "The Law will never be perfect but its application should be just"


@pytest.fixture(scope="module")
def encoder():
    return Encoder()


def test_its_looks_at_law_most_in_layer_3_head_1(encoder):
    tokens, maps = encoder.attention(LAW)
    its_to_law = maps[:, :, tokens.index("its"), tokens.index("law")]
    assert divmod(its_to_law.argmax().item(), 12) == (3, 1)
    # The band covers float32 on other processors; the runner-up head is at 0.703.
    assert its_to_law.max().item() == pytest.approx(0.794, abs=0.002)


def test_words_are_lower_cased_framed_and_cut_into_known_pieces(encoder):
    tokens, maps = encoder.attention("The Tokenizer")
    assert tokens == ["[CLS]", "the", "token", "##izer", "[SEP]"]
    assert maps.shape == (6, 12, 5, 5)


def test_every_row_of_every_map_sums_to_one(encoder):
    _, maps = encoder.attention(LAW)
    close(maps.sum(dim=-1), torch.ones(6, 12, 14))


def test_its_first_layer_is_our_attention_on_its_own_projections(encoder):
    """The maps are scaled dot products of the model's queries and keys, by our formula."""
    _, maps = encoder.attention(LAW)
    with torch.no_grad():
        x = encoder.model.embeddings(encoder.tokenizer(LAW, return_tensors="pt")["input_ids"])[0]
        first = encoder.model.encoder.layer[0].attention.self
        q, k = (proj(x).view(14, 12, 32).transpose(0, 1) for proj in (first.query, first.key))
    close(attention_weights(q, k), maps[0])


def test_nothing_about_it_learns(encoder):
    assert not encoder.model.training
    assert not any(weight.requires_grad for weight in encoder.model.parameters())
    assert not encoder.attention(LAW)[1].requires_grad


def test_a_text_beyond_the_last_position_is_refused(encoder):
    assert len(encoder.attention("law " * 510)[0]) == 512
    with pytest.raises(ValueError, match="at most 512 tokens, got 513"):
        encoder.attention("law " * 511)


def test_missing_weights_are_refused_with_the_command_that_fetches_them(monkeypatch, tmp_path):
    monkeypatch.setenv("PLAINFORMER_CACHE", str(tmp_path))
    with pytest.raises(AssetError, match="run `plainformer assets`"):
        Encoder()


def test_a_missing_library_is_refused_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'plainformer\[book\]'"):
        Encoder()


def test_it_loads_offline_in_silence_and_leaves_the_librarys_settings_alone():
    program = """
import socket
def refuse(*args, **kwargs): raise AssertionError("the network was asked for")
socket.socket.connect = socket.getaddrinfo = refuse
from transformers.utils import logging
logging.enable_progress_bar()
logging.set_verbosity_info()
from plainformer.pretrained.encoder import Encoder
encoder = Encoder()
encoder.attention("the bank by the river")
try:
    encoder.attention("law " * 511)
except ValueError:
    pass
assert logging.is_progress_bar_enabled()
assert logging.get_verbosity() == logging.INFO
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
