"""Published figures against predicted ones: runs, scores, and the report."""
