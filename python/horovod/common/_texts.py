"""Texts of others, such as variables, paths and files, in messages to the user."""


def one_line(text: str) -> str:
    """Returns the text with escapes, such as ``\\n``, in place of all characters that could move a terminal's cursor or have it do
    something."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
