"""Texts that are longer than the line or the cell that they are to stand in."""


def shortened(text: str, num_chars: int) -> str:
    """The text, cut after a word where it is longer: half a word may be the decisive one.

    >>> shortened("a class of another file", 12)
    'a class of ...'
    """
    if len(text) <= num_chars:
        return text
    head = text[: num_chars + 1]
    return f"{head.rpartition(' ')[0] or head[:-1]} ..."
