"""`python -m flows.services`."""

import sys

from flows.services.command import main

sys.exit(main())
