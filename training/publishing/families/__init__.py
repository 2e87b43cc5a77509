"""What each family of model writes into its folder: graphs, words, calibrations. All have the same functions."""
