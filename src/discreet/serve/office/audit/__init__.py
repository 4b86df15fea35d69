"""The audit log: who asked for what and how it ended, never a figure."""
