"""The kinds of voters: what a stump asks of one feature.

A threshold voter says +1 where the value is above its threshold, else -1; a level voter says +1 where the
value is of its level, else -1; both abstain (0) where it is missing. A missing voter says +1 where the value
is missing, else -1.
"""

THRESHOLD, LEVEL, MISSING = 0, 1, 2
