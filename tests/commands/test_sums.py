"""quadboost-sums and quadboost-train --from-sums: the bits of training on those rows."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")

from some_sums import DAYS, labels

import quadboost
from quadboost.commands.main import sums_main, train_main


def ended(main, *arguments):
    with pytest.raises(SystemExit) as end:
        main([*map(str, arguments)])
    return end.value.code


def test_training_on_sums_of_files_has_the_bits_of_their_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    days = [X.assign(y=labels(score)) for X, score, _ in DAYS]
    for name, day in zip(("mon", "tue", "wed"), days, strict=True):
        day.to_csv(f"{name}.csv", index=False)
        more = [] if name == "mon" else ["--voters", "mon.sums"]
        assert ended(sums_main, f"{name}.csv", "--target", "y", "-o", f"{name}.sums", *more) == 0
    sums = ["--from-sums", "mon.sums", "tue.sums", "wed.sums", "--minus", "tue.sums", "-o", "a.h5"]
    assert ended(train_main, *sums) == 0
    pd.concat([days[0], days[2]]).to_csv("both.csv", index=False)
    table = ["both.csv", "--target", "y", "--cv", "0", "--no-calibration", "--thresholds", 63, "-o", "b.h5"]
    assert ended(train_main, *table) == 0
    found, expected = quadboost.load("a.h5"), quadboost.load("b.h5")
    for name in ("feature", "threshold", "weight", "intercept", "bin_mass"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    capsys.readouterr()
    assert ended(train_main, "--from-sums", "mon.csv", "-o", "c.h5") == 2
    assert capsys.readouterr().err.endswith("cannot load mon.csv: it is not a file of sums that quadboost wrote\n")
    assert ended(train_main, "both.csv", "--target", "y", "--minus", "tue.sums", "-o", "c.h5") == 2
    capsys.readouterr()
    assert ended(train_main, "both.csv", "--from-sums", "mon.sums", "-o", "c.h5") == 2
    assert "the table both.csv has no meaning with --from-sums" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--target", "y"], ["a.csv"], ["a.csv", "--target", "y", "--cv", "5"]])
def test_what_sums_lack_or_cannot_use_is_refused(arguments, tmp_path, capsys):
    assert ended(sums_main, *arguments, "-o", tmp_path / "a.sums") == 2
    assert "(see quadboost-sums --help)" in capsys.readouterr().err
