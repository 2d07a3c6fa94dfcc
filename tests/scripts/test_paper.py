"""The experiments of the paper: scripts/reproduce_paper.py and what it is made of."""

import json
import sys
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import AdaBoostClassifier

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import reproduce_paper
from paper import data, protocol, published, significance, voting
from paper.algorithms import all_algorithms
from paper.figures import Figures, compare, published_pairs
from paper.peers import LightGBM, SklearnAdaBoost
from paper.results import Outcome, Store, write_whole

from quadboost import boost, moments_from_matrix

SCRIPTS = Path(reproduce_paper.__file__).parent


def made_dataset(n_rows=60, n_features=3, seed=0, name="made"):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_features))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * random.normal(size=n_rows) > 0.3, 1.0, -1.0)
    return data.Dataset(name, X, y, 2, 0, 0)


@pytest.fixture
def split():
    return protocol.make_split(made_dataset(), 0, seed=0)


def write_dataset(directory, name, n_rows, **entry):
    made = made_dataset(n_rows, name=name)
    lines = ["a,b,kind,label"]
    for i, (row, y) in enumerate(zip(made.X, made.y, strict=True)):
        lines.append(f"{row[0]:.3f},{'' if i % 7 == 0 else f'{row[1]:.3f}'},{'pqr'[i % 3]},{'yes' if y > 0 else 'no'}")
    (directory / f"{name}.csv").write_text("\n".join(lines) + "\n")
    path = directory / data.MANIFEST
    manifest = json.loads(path.read_text()) if path.exists() else {}
    manifest[name] = {"file": f"{name}.csv", "positive": ["yes"], "negative": ["no"], **entry}
    path.write_text(json.dumps(manifest))


class TestSignificance:
    @pytest.mark.parametrize(
        ("only_other", "only_this", "expected"),
        [(0, 0, 1 / 2), (1, 0, 3 / 4), (0, 1, 1 / 4), (3, 1, 26 / 32), (1, 3, 6 / 32), (2, 2, 1 / 2)],
    )
    def test_chance_to_be_better_on_a_dataset(self, only_other, only_this, expected):
        assert significance.better_on_dataset(only_other, only_this) == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize(
        ("chances", "expected"),
        [([0.3], 0.3), ([0.5, 0.5], 0.5), ([0.9, 0.6], 0.54 + 0.42 / 2), ([0.9, 0.6, 0.2], 0.624), ([1.0, 0.0], 0.5)],
    )
    def test_poisson_binomial_test(self, chances, expected):
        assert significance.poisson_binomial_test(chances) == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize(
        ("wins", "losses", "one_sided", "two_sided"),
        [(5, 0, 1 / 32, 1 / 16), (8, 2, 56 / 1024, 112 / 1024), (2, 8, 1013 / 1024, 112 / 1024), (0, 0, 1, 1)],
    )
    def test_sign_test(self, wins, losses, one_sided, two_sided):
        assert significance.sign_test(wins, losses) == pytest.approx((one_sided, two_sided), rel=1e-12)

    def test_ties_are_neither_won_nor_lost(self):
        assert significance.wins_ties_losses([0.1, 0.2, 0.1 + 0.2, 0.5], [0.2, 0.1, 0.3, 0.6]) == (2, 1, 1)

    def test_holm(self):
        np.testing.assert_allclose(significance.holm([0.01, 0.04, 0.03, 0.9]), [0.04, 0.09, 0.09, 0.9])

    def test_bounds_from_risks_by_hand(self):
        row = published.Row(rows=20, test_rows=10, risk={"a": 0.1, "b": 0.3})
        # 1 and 3 errors: on examples (of which both err on one, or on none) the first is better 2 : 0 or 3 : 1
        assert significance.possible_better(row, "a", "b") == pytest.approx((26 / 32, 7 / 8))
        assert significance.possible_better(row, "b", "a") == pytest.approx((1 / 8, 6 / 32))

    def test_bounds_from_risks_hold_whatever_the_errors_in_common(self):
        random = np.random.default_rng(0)
        for _ in range(200):
            mine, its = random.random((2, 12)) < random.random((2, 1))
            row = published.Row(24, 12, {"a": round(mine.mean(), 3), "b": round(its.mean(), 3)})
            low, high = significance.possible_better(row, "a", "b")
            better = significance.better_on_dataset((its & ~mine).sum(), (mine & ~its).sum())
            assert low - 1e-12 <= better <= high + 1e-12


class TestPublished:
    def test_every_risk_is_a_number_of_errors(self):
        for row in published.table1().values():
            assert row.test_rows == row.rows - protocol.n_training_rows(row.rows)
            for name in published.ALGORITHMS:
                assert any(round(k / row.test_rows, 3) == row.risk[name] for k in row.errors(name))

    def test_the_counts_in_the_text_follow(self):
        counts = {(pair.this, pair.other): pair.counts for pair in published_pairs()}
        assert sum(counts["vanilla", "adaboost"][:2]) == 17
        assert sum(counts["l1", "lpboost"][:2]) == 16

    def test_table2_does_not_follow_from_table1(self):
        quad = {"l1", "l2", "linf", "vanilla"}
        impossible = {(pair.this, pair.other) for pair in published_pairs() if not pair.is_possible}
        assert len(impossible) == 7
        assert not any({this, other} <= quad for this, other in impossible)
        stars = {(pair.this, pair.other) for pair in published_pairs() if pair.star}
        passing = {(pair.this, pair.other) for pair in published_pairs() if pair.one_sided <= 0.05}
        assert stars == {("l1", "l2"), ("l1", "linf"), ("linf", "vanilla")}
        assert stars < passing

    def test_table2_is_consistent(self):
        for this, other in combinations(published.ALGORITHMS, 2):
            assert published.table2()[this, other][0] + published.table2()[other, this][0] == pytest.approx(1)


class TestProtocol:
    @pytest.mark.parametrize(("n_rows", "n_train"), [(345, 173), (432, 216), (999, 500), (1001, 500), (5620, 500)])
    def test_half_of_the_rows_but_at_most_500_are_for_training(self, n_rows, n_train):
        assert protocol.n_training_rows(n_rows) == n_train

    def test_split_is_a_partition_that_depends_on_number_and_seed_alone(self):
        dataset = made_dataset()
        one, again, other, reseeded = (
            protocol.make_split(dataset, number, seed) for number, seed in ((0, 0), (0, 0), (1, 0), (0, 1))
        )
        assert len(one.train.y) == len(one.test.y) == 30
        np.testing.assert_array_equal(one.train.X, again.train.X)
        assert not np.array_equal(one.train.X, other.train.X)
        assert not np.array_equal(one.train.X, reseeded.train.X)
        held_out = np.concatenate([validation for _, validation in one.folds])
        assert sorted(held_out) == list(range(30))
        assert len(one.folds) == 5

    def test_normalisation_knows_the_training_rows_alone(self):
        X = np.array([[0.0, 1.0, 5.0], [2.0, np.nan, 5.0], [4.0, 3.0, 5.0], [9.0, np.nan, 7.0]])
        train = np.array([0, 1, 2])
        Z = protocol.normalise(X, train)
        np.testing.assert_allclose(Z[:, 0], np.tanh((X[:, 0] - 2) / np.sqrt(8 / 3)))
        np.testing.assert_allclose(Z[:, 1], np.tanh(np.array([-1, 0, 1, 0]) / np.sqrt(2 / 3)))
        np.testing.assert_allclose(Z[:, 2], np.tanh([0, 0, 0, 2]))
        X[3] = 100.0
        np.testing.assert_array_equal(protocol.normalise(X, train)[:3], Z[:3])

    def test_ten_evenly_spaced_stumps_per_attribute(self, split):
        train, test = split.train, split.test
        assert train.votes.shape == (30, 30)
        for f in range(3):
            low, high = train.X[:, f].min(), train.X[:, f].max()
            cuts = low + (high - low) * np.arange(1, 11) / 11
            np.testing.assert_allclose(train.stumps.cuts[f], cuts)
            for sample in (train, test):
                expected = np.where(sample.X[:, f, None] > train.stumps.cuts[f], 1, -1)
                np.testing.assert_array_equal(sample.votes[:, 10 * f : 10 * f + 10], expected)

    def test_of_equal_settings_the_first_is_chosen_by_rows_that_were_not_seen(self, split):
        class Constant:
            settings = tuple({"answer": answer} for answer in (-1, 1, -1, 1))

            def fit(self, sample, settings):
                seen = {tuple(row) for row in sample.X}

                def classify(rows):
                    assert not seen & {tuple(row) for row in rows.X}
                    return np.array([np.full(len(rows.y), setting["answer"]) for setting in settings])

                return classify

        majority = 1 if split.train.y.sum() > 0 else -1
        trial = protocol.run_trial(Constant(), split)
        assert trial.setting is Constant.settings[[-1, 1].index(majority)]
        assert trial.cv_risk == pytest.approx((split.train.y != majority).mean())
        np.testing.assert_array_equal(trial.test_errors, split.test.y != majority)

    def test_a_score_of_zero_is_a_vote_against(self):
        np.testing.assert_array_equal(protocol.sign(np.array([-1.0, 0.0, 1e-15, 0.5])), [-1, -1, -1, 1])

    def test_grids_are_those_of_the_paper(self):
        def ends(settings, name):
            values = [setting[name] for setting in settings]
            return len(set(values)), pytest.approx(min(values)), pytest.approx(max(values))

        assert ends(voting.GRIDS["l1"], "reg_lambda") == (10, 1e-4, 1)
        assert ends(voting.GRIDS["l2"], "reg_lambda") == (10, 1, 1e3)
        assert ends(voting.GRIDS["l2"], "max_rounds") == (10, 10, 100_000)
        assert ends(voting.GRIDS["linf"], "alpha_max") == (10, 1e-4, 1e-1)
        assert ends(voting.GRIDS["linf"], "max_rounds") == (10, 1, 100_000)
        assert ends(voting.GRIDS[None], "max_rounds") == (10, 1, 1_000)
        assert ends(voting.LPBoost.settings, "C") == (10, 1e-3, 1e3)
        assert ends(voting.AdaBoost(1_000_000).settings, "rounds") == (10, 100, 1_000_000)
        assert len(voting.GRIDS["l2"]) == len(voting.GRIDS["linf"]) == 100

    def test_grids_begin_with_the_strongest_regularisation(self):
        assert voting.GRIDS["l1"][0]["reg_lambda"] == 1
        assert voting.GRIDS["l2"][0] == {"reg_lambda": 1000, "max_rounds": 10}
        assert voting.GRIDS["linf"][0] == {"alpha_max": pytest.approx(1e-4), "max_rounds": 1}


class TestQuadBoost:
    @pytest.mark.thinned(4)
    @pytest.mark.parametrize("penalty", ["l1", "l2", "linf", None])
    @pytest.mark.parametrize("fit_intercept", [False, True])
    @pytest.mark.parametrize("mode", ["forward", "corrective"])
    def test_stages_of_one_run_are_the_runs_of_each_setting(self, split, penalty, mode, fit_intercept):
        algorithm = voting.QuadBoost(penalty, mode, fit_intercept)
        settings = voting.GRIDS[penalty][-14:-4] if penalty in ("l2", "linf") else voting.GRIDS[penalty]
        together = algorithm.fit(split.train, settings)
        for i, setting in enumerate(settings):
            alone = algorithm.fit(split.train, [setting])
            np.testing.assert_allclose(together.weight[i], alone.weight[0], atol=1e-12)
            np.testing.assert_allclose(together.intercept[i], alone.intercept[0], atol=1e-12)

    @pytest.mark.parametrize("fit_intercept", [False, True])
    def test_is_the_algorithm_on_the_matrix_of_votes(self, split, fit_intercept):
        setting = {"reg_lambda": 10.0, "max_rounds": 40}
        found = voting.QuadBoost("l2", "forward", fit_intercept).fit(split.train, [setting])
        moments = moments_from_matrix(split.train.votes, split.train.y)
        expected = boost(moments, "l2", mode="forward", fit_intercept=fit_intercept, **setting)
        np.testing.assert_allclose(found.weight[0], expected.weight, atol=1e-12)
        assert found.intercept[0] == pytest.approx(expected.intercept, abs=1e-12)
        scores = split.test.votes @ expected.weight + expected.intercept
        np.testing.assert_array_equal(found(split.test)[0], np.where(scores > 1e-9, 1, -1))

    def test_columns_have_names_of_their_own(self):
        assert len(all_algorithms(100, [])) == 2 * (4 + 3) + 2


class TestLPBoost:
    @pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 100.0])
    def test_primal_equals_dual(self, split, C):
        votes, y = split.train.votes, split.train.y
        weight, example_weight = voting.lpboost(votes, y, C)
        slack = np.maximum(0.0, 1.0 - y * (votes @ weight))
        primal, dual = np.abs(weight).sum() + C * slack.sum(), example_weight.sum()
        assert primal == pytest.approx(dual, rel=1e-7)
        assert np.abs((example_weight * y) @ votes).max() <= 1 + 1e-7
        assert example_weight.min() >= -1e-9
        assert example_weight.max() <= C + 1e-9

    def test_separates_what_can_be_separated(self):
        votes = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1.0]])
        y = np.array([1, 1, -1, -1.0])
        weight, _ = voting.lpboost(votes, y, 1000.0)
        np.testing.assert_allclose(weight, [1, 0], atol=1e-9)


class BestVoter(ClassifierMixin, BaseEstimator):
    """A weak learner for scikit-learn: the column, or its complement, with the least weighted error."""

    def fit(self, X, y, sample_weight):
        self.classes_ = np.unique(y)
        edge = X.T @ (sample_weight * y)
        self.voter_ = int(np.argmax(np.abs(edge)))
        self.sign_ = np.sign(edge[self.voter_])
        return self

    def predict(self, X):
        return self.sign_ * X[:, self.voter_]


class TestAdaBoost:
    def test_equals_that_of_scikit_learn(self, split):
        votes, y = split.train.votes, split.train.y
        theirs = AdaBoostClassifier(BestVoter(), n_estimators=60).fit(votes, y)
        voter, added = voting.adaboost(votes, y, 60)
        assert voter.tolist() == [estimator.voter_ for estimator in theirs.estimators_]
        signs = np.array([estimator.sign_ for estimator in theirs.estimators_])
        np.testing.assert_allclose(2 * added, signs * theirs.estimator_weights_, rtol=1e-9)
        ours = voting.AdaBoost(100).fit(split.train, [{"rounds": t} for t in (1, 7, 60)])
        staged = list(theirs.staged_predict(split.test.votes))
        np.testing.assert_array_equal(ours(split.test), [staged[t - 1] for t in (1, 7, 60)])

    def test_long_runs_follow_the_exponential_loss(self, split):
        votes, y = split.train.votes, split.train.y
        voter, added = voting.adaboost(votes, y, 3000)
        score = np.zeros(len(y))
        for t, (j, alpha) in enumerate(zip(voter, added, strict=True)):
            if t % 500 == 499:
                weight = np.exp(-y * score + (y * score).min())
                edges = votes.T @ (weight * y) / weight.sum()
                assert abs(edges[j]) == pytest.approx(np.abs(edges).max(), abs=1e-7)
                assert np.tanh(alpha) == pytest.approx(edges[j], abs=1e-7)
            score += alpha * votes[:, j]

    def test_a_voter_that_never_errs_is_enough(self):
        votes = np.array([[1, 1], [1, -1], [-1, -1.0]])
        voter, added = voting.adaboost(votes, np.array([-1, 1, 1.0]), 10)
        assert (voter.tolist(), added.tolist()) == ([1], [-1])

    def test_ends_where_no_voter_is_better_than_chance(self):
        votes = np.array([[1.0], [-1], [1], [-1]])
        voter, _ = voting.adaboost(votes, np.array([1, 1, -1, -1.0]), 10)
        assert len(voter) == 0


@pytest.mark.parametrize("peer", [pytest.param(LightGBM(), marks=pytest.mark.oracle("lightgbm")), SklearnAdaBoost()])
def test_stages_of_a_peer_are_the_fits_of_each_setting(split, peer):
    settings = peer.settings[:2]
    together = peer.fit(split.train, settings)(split.test)
    for i, setting in enumerate(settings):
        np.testing.assert_array_equal(together[i], peer.fit(split.train, [setting])(split.test)[0])


class TestData:
    def test_values_labels_and_what_was_decided(self, tmp_path):
        write_dataset(tmp_path, "zoo", 40)
        dataset = data.load(tmp_path, "zoo")
        made = made_dataset(40)
        np.testing.assert_allclose(dataset.X[:, 0], made.X[:, 0], atol=0.0005)
        np.testing.assert_array_equal(dataset.X[:, 2], np.arange(40) % 3)
        np.testing.assert_array_equal(np.isnan(dataset.X[:, 1]), np.arange(40) % 7 == 0)
        np.testing.assert_array_equal(dataset.y, made.y)
        assert (dataset.n_labels, dataset.n_categorical, dataset.n_missing) == (2, 1, 6)

    def test_categories_are_numbers_in_alphabetical_order(self):
        column, categorical = data.code(["b", "", "a", "10", "b"])
        np.testing.assert_array_equal(column, [2, np.nan, 1, 0, 2])
        assert categorical

    def test_no_more_rows_than_the_paper_had(self, tmp_path):
        write_dataset(tmp_path, "zoo", 130)
        assert len(data.load(tmp_path, "zoo").y) == 101

    def test_another_file_than_described_is_refused(self, tmp_path):
        write_dataset(tmp_path, "zoo", 20, sha256="0" * 64)
        with pytest.raises(SystemExit, match="SHA-256"):
            data.load(tmp_path, "zoo")

    def test_a_label_of_neither_class_is_refused(self, tmp_path):
        write_dataset(tmp_path, "zoo", 20, negative=["never"])
        with pytest.raises(SystemExit, match="'no' is neither"):
            data.load(tmp_path, "zoo")

    def test_download_makes_a_directory_that_can_be_read(self, tmp_path, monkeypatch):
        import pandas as pd

        def fetch(*, data_id, target_column, **options):
            assert (data_id, target_column) == (6, "default-target")
            labels = np.array(list("ABC"))[np.arange(3000) % 3]
            return pd.DataFrame({"x": np.arange(3000.0), "y": [None, "u"] * 1500}), pd.Series(labels)

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        data.download(tmp_path, ["letter_ab"])
        dataset = data.load(tmp_path, "letter_ab")
        assert dataset.X.shape == (1555, 2)
        np.testing.assert_array_equal(dataset.X[:4, 0], [0, 1, 3, 4])
        np.testing.assert_array_equal(dataset.y[:4], [1, -1, 1, -1])
        assert np.isnan(dataset.X[0, 1])

    def test_every_dataset_can_be_asked_of_openml(self):
        with open(Path(data.__file__).with_name("openml.csv")) as file:
            assert [line.split(",")[0] for line in file][1:] == list(published.table1())


class TestFigures:
    @pytest.fixture
    def figures(self):
        """Two splits of two datasets; `b` errs on one example more than `a` wherever it can."""
        errors = {("a", "heart"): [1, 0, 0, 0], ("b", "heart"): [1, 1, 0, 0]}
        errors |= {("a", "zoo"): [0, 1, 0, 1], ("b", "zoo"): [1, 1, 0, 0]}
        return Figures(
            [
                Outcome(dataset, split, algorithm, {}, None, np.array(wrong, dtype=bool), 1.0, 0.5)
                for (algorithm, dataset), wrong in errors.items()
                for split in range(2)
            ]
        )

    def test_means_and_times(self, figures):
        np.testing.assert_array_equal(figures.mean("b"), [0.5, 0.5])
        np.testing.assert_array_equal(figures.deviation("b"), [0, 0])
        assert figures.seconds("a") == (0.5, 1.5)

    def test_two_algorithms_are_compared_dataset_by_dataset(self, figures):
        (pair,) = compare(figures, ["a", "b"])
        assert pair.counts == (1, 1, 0)
        # heart 1 : 0, zoo 1 : 1, so chances 3/4 and 1/2
        assert pair.better == pytest.approx(0.375 + 0.5 / 2)
        assert (pair.one_sided, pair.two_sided, pair.holm) == (0.5, 1.0, 1.0)


class TestStore:
    def test_results_are_not_overwritten_without_resume(self, tmp_path):
        Store(tmp_path).open({"seed": 0}, resume=False)
        with pytest.raises(SystemExit, match="--resume"):
            Store(tmp_path).open({"seed": 0}, resume=False)
        Store(tmp_path).open({"seed": 0}, resume=True)

    def test_other_settings_are_refused(self, tmp_path):
        Store(tmp_path).open({"seed": 0}, resume=False)
        with pytest.raises(SystemExit, match="was made with seed 0, not 1"):
            Store(tmp_path).open({"seed": 1}, resume=True)

    def test_a_failed_write_leaves_what_was_there(self, tmp_path):
        path = tmp_path / "file"
        write_whole(path, "old")
        with pytest.raises(UnicodeEncodeError):
            write_whole(path, "new \ud800")
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]


class TestCommand:
    @pytest.fixture
    def arguments(self, tmp_path, monkeypatch):
        """A small run, in this process, with few values in each grid."""
        few = {
            "l1": voting.grid(reg_lambda=[0.1, 0.01], max_rounds=[100]),
            "l2": voting.grid(reg_lambda=[10.0], max_rounds=[10, 50]),
            "linf": voting.grid(alpha_max=[0.1], max_rounds=[10, 50]),
            None: voting.grid(max_rounds=[10, 50]),
        }
        monkeypatch.setattr(voting, "GRIDS", few)
        monkeypatch.setattr(voting.LPBoost, "settings", voting.LPBoost.settings[4:6])
        (tmp_path / "data").mkdir()
        for name in ("zoo", "heart"):
            write_dataset(tmp_path / "data", name, 50)
        return [
            *("--data", str(tmp_path / "data"), "--output", str(tmp_path / "out")),
            *("--splits", "2", "--jobs", "1", "--adaboost-rounds", "100", "--peers"),
        ]

    @pytest.mark.slow
    def test_writes_report_and_tables(self, tmp_path, arguments):
        reproduce_paper.main([*arguments, "--docs", str(tmp_path / "page.md")])
        report = (tmp_path / "out" / "report.md").read_text()
        for part in (
            "## Table 1",
            "## Table 2",
            "| zoo |",
            "QuadBoost-L1 forward",
            "LPBoost",
            "(0.040)",
            "7 of the 15",
        ):
            assert part in report
        assert str(tmp_path) not in report
        assert len((tmp_path / "out" / "trials.csv").read_text().splitlines()) == 1 + 2 * 2 * 16
        assert len((tmp_path / "out" / "table1.csv").read_text().splitlines()) == 1 + 2 * 16
        assert (tmp_path / "page.md").read_text() == report.replace("](report/", "](page/")
        plots = [line for line in report.splitlines() if line.startswith("![")]
        assert len(plots) == (3 if find_spec("matplotlib") else 0)
        for line in plots:
            assert (tmp_path / "out" / line.split("(")[1].rstrip(")")).is_file()

    @pytest.mark.slow
    def test_goes_on_where_it_stopped(self, tmp_path, arguments, monkeypatch):
        n_trials = 0
        run_trial = protocol.run_trial

        def stop_after_20(*inputs):
            nonlocal n_trials
            n_trials += 1
            if n_trials == 21:
                raise KeyboardInterrupt
            return run_trial(*inputs)

        monkeypatch.setattr("paper.run.run_trial", stop_after_20)
        with pytest.raises(SystemExit):
            reproduce_paper.main(arguments)
        reproduce_paper.main([*arguments, "--resume"])
        assert n_trials == 1 + 2 * 2 * 16
        resumed = (tmp_path / "out" / "table1.csv").read_text()
        arguments[3] = str(tmp_path / "again")
        reproduce_paper.main(arguments)
        assert (tmp_path / "again" / "table1.csv").read_text() == resumed

    def test_a_dataset_that_is_not_there(self, arguments):
        with pytest.raises(SystemExit, match="--datasets wine: those of the paper that are here are zoo, heart"):
            reproduce_paper.main([*arguments, "--datasets", "wine"])

    @pytest.mark.slow
    def test_processes_share_the_work(self, tmp_path, run_python):
        write_dataset(tmp_path, "zoo", 24)
        run_python(
            f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import reproduce_paper; reproduce_paper.main("
            f"['--data', {str(tmp_path)!r}, '--output', 'out', '--splits', '2', '--jobs', '2', '--peers'])"
        )
        assert len(list((tmp_path / "out" / "results").iterdir())) == 2
        assert (tmp_path / "out" / "report.md").is_file()
