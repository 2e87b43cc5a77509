"""Where to cut a model's scores, chosen on labelled pairs of one's own; needs neither torch nor scikit-learn."""
