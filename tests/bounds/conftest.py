"""Settings for the tests of bounds."""

import mpmath

mpmath.mp.dps = 80  # oracles compute with so many digits, whichever file runs alone
