"""What `tools/recordings.py` records: parts that give names and texts of answers, on fixed inputs.

A part has `answers(only)`, which gives pairs of a name and a text. The parts use public names, the
command line and HTTP alone (`entry.py` finds the command).
"""
