"""What can be made of a release, and the files other programs read."""
