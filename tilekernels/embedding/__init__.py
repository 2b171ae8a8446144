"""Token embedding look-up."""
