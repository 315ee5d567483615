"""How alike program texts are: words and runs of three words, weighted by how rare they are among the texts."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

_WORD = re.compile(r"[A-Za-z_]\w*|\d+|[^\w\s]")
_COMMENT = re.compile(r"#[^\n]*")
_RUN = 3
_MAX_WORDS = 20_000


def similarities(source: str, others: Sequence[str]) -> list[float]:
    """The cosine between a text and each other one, from 0 (nothing shared) to 1 (the same words in the same order).

    Punctuation counts in runs only, comments and layout nowhere. Rare words weigh more, so what every candidate has in
    common, such as "import torch", hardly counts.
    """
    counts = [_features(text) for text in (source, *others)]
    occurrences = Counter(feature for count in counts for feature in count)
    # Smoothed, as if one more text had every feature: with few texts, what they share must not weigh nothing.
    weights = {feature: 1 + math.log((1 + len(counts)) / (1 + number)) for feature, number in occurrences.items()}
    own, *vectors = [{feature: (1 + math.log(n)) * weights[feature] for feature, n in c.items()} for c in counts]
    return [_cosine(own, vector) for vector in vectors]


def _features(text: str) -> Counter[str]:
    words = _WORD.findall(_COMMENT.sub("", text))[:_MAX_WORDS]
    features = Counter(word for word in words if word[0].isalpha() or word[0] == "_")
    features.update(" ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1))
    return features


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    length = math.sqrt(sum(w * w for w in one.values()) * sum(w * w for w in other.values()))
    shared = sum(weight * other[feature] for feature, weight in one.items() if feature in other)
    return shared / length if length else 0.0
