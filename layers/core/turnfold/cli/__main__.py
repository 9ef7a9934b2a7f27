"""`python -m turnfold.cli`: the same as `turnfold`."""

import sys

from turnfold.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
