"""What users bring: tables read as one real matrix, targets and weights checked, sums that are exact."""
