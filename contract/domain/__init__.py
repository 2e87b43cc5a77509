"""For what text the tasks of a model are."""
