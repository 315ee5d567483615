"""The byte-level BPE of a policy made from scratch: how Python text is cut before merges are learnt."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

END = "<|end|>"
PAD = "<|pad|>"

# Text is cut into these pieces, the first that fits, and only within a piece do merges happen. Two things follow. The
# phrases every file of the format has cost one token each. And a name is the same tokens wherever it occurs, so that
# copying from the prompt is copying tokens.
_PIECES = "|".join(
    [
        r"import torch\nimport torch\.nn as nn\n(?:import torch\.nn\.functional as F\n)?",
        r"\n\nclass Model(?:New)?\(nn\.Module\):\n",
        r"    def __init__\(self(?:, )?",
        r"\):\n        super\(\)\.__init__\(\)\n(?:        )?",
        r"\n?    def forward\(self(?:, )?",
        r"\n\n\ndef get_(?:init_)?inputs\(\):\n    return \[",
        r"# (?:reference|faster)\n",
        r"self\.|(?:torch|nn|F)\.(?:[A-Za-z_]\w*\()?|\.[A-Za-z_]\w*\(",  # the start of a call, its library included
        r"(?:and|as|class|def|else|for|from|if|import|in|is|lambda|not|or|return|with) ",
        r"[A-Za-z_]\w*(?:=(?!=))?",  # a name, or a keyword argument's with its sign
        r"[0-9]+(?:\.[0-9]+)?",
        r"[^\w\s]*\n+ *(?:return )?",  # the end of a line and the next one's indentation
        r" ?[^\w\s]+ ?",  # operators and brackets
        r"\s",
    ]
)

# A line that fewer texts have is about one problem, to be copied and not known; one of fewer tokens is short anyway.
_MIN_TEXTS_OF_A_LINE = 10
_MIN_TOKENS_OF_A_LINE = 4


def new_tokenizer(corpus: Sequence[str], *, vocab_size: int, line_tokens: int = 0) -> "PreTrainedTokenizerFast":
    """A tokenizer learnt from the corpus. It encodes any text, and decodes what it encoded to the same text.

    Args:
        vocab_size: tokens at most, without those of lines.
        line_tokens: whole lines that become a token each, at most: those of ten texts or more which save most by it.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    lines = _shared_lines(corpus, tokenizer, most=line_tokens)
    tokenizer.add_tokens([AddedToken(line, normalized=False) for line in lines])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def _shared_lines(corpus: Sequence[str], tokenizer: "Tokenizer", *, most: int) -> list[str]:
    """Lines, with their ends, that would take the most tokens off the corpus were they one each."""
    counts = Counter(line for text in corpus for line in set(text.splitlines(keepends=True)) if line.endswith("\n"))
    saved = {}
    for line, count in counts.items():
        if count >= _MIN_TEXTS_OF_A_LINE and (length := len(tokenizer.encode(line).ids)) >= _MIN_TOKENS_OF_A_LINE:
            saved[line] = count * (length - 1)
    return sorted(saved, key=lambda line: (-saved[line], line))[:most]
