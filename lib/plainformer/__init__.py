"""plainformer: Transformers from attention to BERT, GPT, T5 and BART, written to be read.

Import folders and files by name, for example `from plainformer.attention import
dot_product_attention`. This file stays empty of imports, so that `import plainformer` is instant.
"""

__version__ = "0.1.0"
