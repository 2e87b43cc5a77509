"""What exit codes of the process say; 0 is an end that was asked for."""

EXIT_KILLED = 1  # no worker lives, and none could say why
EXIT_SETTINGS = 2  # a variable does not fit
EXIT_MODELS = 3  # a model, a default, a provider, the port or a folder is not as the settings say
