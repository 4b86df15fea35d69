"""Fits of margins alone: nothing of the size of the crossing is stored or walked through."""
