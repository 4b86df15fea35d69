"""Public batteries that hold methods, fitters and engines to their promises, and slow references."""
