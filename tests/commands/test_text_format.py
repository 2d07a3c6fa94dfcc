"""The options that say how a text file is written."""

from argparse import Namespace

import pytest

from quadboost.commands.text_format import MISSING, TextFormat


def test_the_options_become_a_format():
    arguments = Namespace(delimiter="tab", decimal=",", encoding="latin-1", missing_text=[" .. ", "-"])
    assert TextFormat.of(arguments) == TextFormat("\t", ",", "latin-1", ("..", "-"))
    arguments = Namespace(delimiter=None, decimal=".", encoding="utf-8", missing_text=None)
    assert TextFormat.of(arguments) == TextFormat() == TextFormat(None, ".", "utf-8", MISSING)
    assert TextFormat.of(arguments, ("none",)).missing == ("none",)


@pytest.mark.parametrize("name", ["utf-8", "UTF8", "U8", "latin-1", "utf-16"])
def test_the_names_of_an_encoding_are_one(name):
    assert TextFormat(encoding=name).is_utf8 == (name.lower()[0] == "u" and "8" in name)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"delimiter": "ab"}, "--delimiter 'ab' must be a single ASCII character, or the word tab"),
        ({"delimiter": ""}, "--delimiter '' must be a single"),
        ({"delimiter": '"'}, "--delimiter '\"' must be a single"),
        ({"delimiter": "\n"}, "--delimiter '.n' must be a single"),
        ({"delimiter": "é"}, "--delimiter 'é' must be a single"),
        ({"delimiter": ",", "decimal": ","}, "--delimiter and --decimal are both ','; they must differ"),
        ({"encoding": "nonsense"}, "--encoding 'nonsense' is not known; give one such as utf-8 or latin-1"),
        ({"encoding": "base64"}, "--encoding 'base64' is not known"),
    ],
)
def test_what_makes_no_sense_is_refused(how, message):
    with pytest.raises(ValueError, match=message):
        TextFormat(**how)
