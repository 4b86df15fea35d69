"""One of each kind that another package can register: a file, and a line in its entry points."""
