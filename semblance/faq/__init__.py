"""An FAQ: which models answer from it best, and from which confidence on; needs neither torch nor scikit-learn."""
