"""A package that is missing is named, with what installs it."""

import pytest

from quadboost.common.packages import needed


def test_a_package_is_imported_or_the_remedy_is_told():
    assert needed("json.decoder", "this needs", "json").JSONDecoder is not None
    with pytest.raises(ImportError, match=r"^maps need no_such, which is not installed; pip install 'x\[maps\]'$"):
        needed("no_such.part", "maps need", "'x[maps]'")
