"""Processes: one that serves, several workers, their signals, and what uvicorn is told."""

# Exit codes; 0 is a normal end.
EXIT_KILLED = 1  # no worker is left, and none gave a reason
EXIT_SETTINGS = 2  # a variable is invalid
EXIT_MODELS = 3  # a model, a default, a provider, the port or a folder is not as the settings say
WORKER_EXIT = 10  # more in a worker: by the code 3 uvicorn would end the workers that serve too
