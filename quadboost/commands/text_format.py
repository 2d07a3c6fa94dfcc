"""How a text file is written, as the options of the commands say."""

from __future__ import annotations

import codecs
from argparse import Namespace
from dataclasses import dataclass

# These are missing values where no others are named, also between spaces or in quotes.
MISSING = (
    "?", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "NaN", "nan", "-NaN", "-nan", "NaT", "null", "NULL",
    "None", "<NA>", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
)  # fmt: skip
MISSING_TEXT = "missing_text"  # where a model's info has the words that it was trained with, if not these
DECIMALS = (".", ",")


@dataclass(frozen=True)
class TextFormat:
    """How a text file is written.

    Attributes
    ----------
    delimiter : str, optional
        None: found from the name of the file and its first line.
    decimal : {".", ","}
    encoding : str
    missing : tuple of str
        Words that are missing values; an empty field always is one.
    """

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = MISSING

    def __post_init__(self) -> None:
        delimiter = self.delimiter
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
            raise ValueError(f"--delimiter {delimiter!r} must be a single ASCII character, or the word tab")
        if delimiter is not None and delimiter == self.decimal:
            raise ValueError(f"--delimiter and --decimal are both {delimiter!r}; they must differ")
        try:
            codecs.lookup(self.encoding)
            "".encode(self.encoding)  # some codecs are not of text
        except (LookupError, ValueError):
            raise ValueError(f"--encoding {self.encoding!r} is not known; give one such as utf-8 or latin-1") from None

    @classmethod
    def of(cls, arguments: Namespace, missing: tuple[str, ...] = MISSING) -> TextFormat:
        """As the options say; `missing` are the words where those do not."""
        delimiter = "\t" if arguments.delimiter in ("tab", "\\t") else arguments.delimiter
        if arguments.missing_text is not None:
            missing = tuple(word.strip() for word in arguments.missing_text)
        return cls(delimiter, arguments.decimal, arguments.encoding, missing)

    @property
    def is_utf8(self) -> bool:
        return codecs.lookup(self.encoding).name == "utf-8"
