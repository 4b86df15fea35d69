"""What users hold: `Microdata`, `Table`, `Release` and `Trial`, with their verbs.

Each is the plain class that lower floors pass to each other, and methods that call these floors.
"""
