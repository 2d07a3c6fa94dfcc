"""What the two commands do; `quadboost.cli` reads their arguments and tells their errors."""
