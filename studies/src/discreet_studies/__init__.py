"""Papers run again: every printed figure beside the computed one, with a verdict."""
