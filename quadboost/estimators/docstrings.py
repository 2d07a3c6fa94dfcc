"""The parts of docstrings that estimators share."""

TREE_PARAMETERS = """n_trees : int
        How many trees to grow; every node of them is a voter beside the stumps: a rule, such as "young and low income".
        0: stumps alone.
    max_leaves : int
        Most leaves of a tree, at most 254.
    max_conditions : int, optional
        Most features that meet in a rule; 2: pairs only.
    interaction_cst : "pairwise", "no_interactions" or a list of groups of columns, optional
        Which features may meet in a rule: those of a group, given by their names or numbers. Columns in no group are
        one more.
    growth_rows : int
        Trees are grown on at most so many rows, and weighed on all of them."""

SHARED_PARAMETERS = """penalty : {"auto", "l1", "l2", "linf", None}
        Of the weights; "auto": l1, for few stumps, or with trees l2, for accuracy. None is the paper's vanilla
        QuadBoost. Under l2 the weights of rules, and of more than 2,000 stumps, are not made by rounds but solved for
        at once, unless stumps are asked for rounds: by `max_rounds`, `warm_start`, callbacks or validation rows.
    reg_lambda : float, "auto" or "theory"
        Strength of an l1 penalty, which adds 2 reg_lambda sum |a| to the risk, or of an l2 penalty, which adds
        reg_lambda sum a^2. "auto", for l1: by generalised cross-validation along the path from the strongest useful
        penalty down, on the moments (forward: 0.4 std(y) / sqrt(m)); for l2 by the same estimate, the same
        for all outputs (with K voters 0.3 K / m under other losses, and where more than 2,000 stumps are asked for
        rounds or are of a table of more than 2^26 cells; forward: 1600 sqrt(K) / m); for l2 with trees what their
        growth says of the noise: trace(G) / m (1 - r2) / r2, with the Gram matrix G of centred voters and r2 out of
        sample. What it came to is in `reg_lambda_`.
        "theory", for labels only, is the one of the risk bound: larger than what predicts best. Under other losses the
        strength is that of mean(loss) + reg_lambda sum |a|, or + reg_lambda / 2 sum a^2; the squared loss is half the
        risk, so it means the same there.
    alpha_max : float or "auto"
        Largest weight under the linf penalty. "auto", with K voters: 0.7 std(y) sqrt(m) / K.
    mode : {"corrective", "forward"}
        A voter drawn again is re-weighted, or (the paper's plain loop) a second copy of it is added.
    max_rounds : int
        Most boosting rounds, for each output, those along the path of `reg_lambda` included (under other losses: in
        each pass). A `ConvergenceWarning` says when they were too few.
    thresholds : int, "auto" or "all"
        Most thresholds of a feature. "auto": 255, or fewer where there are more than 392 features, but at least 15;
        "all": every midpoint of distinct values.
    spacing : {"quantile", "uniform"}
        Thresholds with equal mass between them, or evenly spaced.
    fit_intercept : bool
        An unpenalised constant, always at its optimum. The paper has none.
    reweight_every : int, "auto" or None
        Re-weight the voters of the ensemble after every so many rounds. "auto": where there is a dual gap, solve for
        all their weights at once as often as that pays.
    reweight_sweeps : int or "solve"
        Re-weighting sweeps at a time; "solve": all weights of the ensemble are solved for at once, which reaches the
        optimum in far fewer rounds, and pays where no more than a few hundred voters have a weight.
    validation_fraction : float, optional
        Share of the rows to set aside for early stopping, where no validation set is given to `fit`.
    patience : int
        Stop after so many rounds (under other losses: passes) without a lower validation risk, or loss.
    tol : float
        Stop when the dual gap is at most this times the risk of the best constant: a proof that the objective is that
        near to its minimum. Where there is no gap (no penalty, or forward mode): when no voter's weight would move by
        more than a thousandth of this, in units of the target's standard deviation. Under other losses: when a pass
        lowers the objective by less than this, as a share of what all passes have lowered it by.
    cache_bytes : int
        Memory for Gram columns; more is faster, the result is the same.
    categorical_features : "auto", None, or a list of columns
        Features of which each level is a voter. "auto": text, bool and categorical columns of a frame.
    min_category_count : int
        Levels of less weight than this are pooled.
    monotonic_cst : dict or list, optional
        From columns (names or numbers) to 1, -1 or 0: the score may only rise with the feature, only fall, or both; or
        a list with one of these for each column. What a missing value adds is free. With several scores a sign is for
        all of them; a list of as many signs, in place of one, has a sign for each.
    max_voters : int, optional
        Under l1: the most voters with a weight, for each score. Of those that the penalty leaves, the ones that matter
        most stay, and are weighed under the same penalty. With it, "auto" is l1 also with trees.
    warm_start : bool
        Go on from the last fit, which must have been on the same data. Several fits lead to where one does (under
        other losses: near it, for passes begin anew at the weights of the last).
    max_seconds : float, optional
        Stop the rounds after this time; trees are grown in half of it.
    callbacks : list of callables, optional
        Called as callback(round, risk, validation_risk) every `callback_every` rounds, after each strength of a path,
        and after each step where all weights are solved for together; a true answer stops them.
        With several outputs they are called for each. Under other losses: after each pass, with its number and loss.
    callback_every : int
        Rounds between two calls.
    n_jobs : int, optional
        Threads; None: every core that this process may use. The result is the same bits for any number.
    random_state : int, optional
        For `validation_fraction`, and for the rows and directions that trees are grown on; None is 0 for trees.
    verbose : int
        1: show progress, by a bar; 2: by a line every few seconds."""

SHARED_ATTRIBUTES = """ensemble_ : Ensemble
        The model itself, usable without scikit-learn.
    intercept_ : float, or array of shape (n_outputs,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.
    n_rounds_ : int
        Rounds behind the ensemble. This and what follows: a list, one entry per output, where there are several.
    history_ : dict of arrays, one entry a round, also of rounds after the best one
        voter (and its feature and threshold), edge, weight, risk, objective, and validation_risk if there is any.
        Where `reg_lambda` was chosen along a path, also path_lambda, path_risk, path_gcv and path_active (voters with a
        weight; under l2 degrees of freedom, and the risk is a share of that of the best constant), one entry per
        strength that was tried. Under other losses: loss and objective after each pass, the rounds it took, and
        validation_loss if there is any.
    dual_gap_ : float
        A bound on the distance of the objective from its minimum, in corrective mode; NaN where none is known, such as
        without a penalty. Under other losses, of all outputs together.
    violation_ : float
        The largest violation of the conditions of optimality, in corrective mode.
    reg_lambda_ : float
        The strength that was used; under linf that is `alpha_max`.
    stop_reason_ : {"max_rounds", "converged", "patience", "max_seconds", "callback", "grown"}
        "grown": the weights are those that trees were grown with.
    feature_importances_ : array of shape (d,)
        How much each feature moves the scores of the training rows: standard deviation, as a share of the sum."""
