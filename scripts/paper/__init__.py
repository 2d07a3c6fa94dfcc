"""The experiments of the paper (its section 4): what `reproduce_paper.py` is made of."""
