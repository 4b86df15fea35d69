"""Data sets of a site and where their protected cubes come from."""
