"""What training needs to know of the rows: sums that add up, and columns of the Gram matrix."""
