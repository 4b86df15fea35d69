"""`discreet` whose table builder keeps nothing in memory, so that every table is a new one."""

import sys

from discreet.cli import main
from discreet.serve import app
from discreet.serve.data import dataset

# Workers import this file again, and so keep nothing either.
dataset._CUBE_BYTES = 0
app.ResponseCache.__init__.__defaults__ = (0,)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
