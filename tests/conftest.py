"""Profiles of Hypothesis: `ci` is the default and repeatable, `deep` looks for more.

`HYPOTHESIS_PROFILE=deep .venv/bin/python -m pytest tests/application/test_state_machine.py`
"""

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "ci", derandomize=True, deadline=None, database=None, suppress_health_check=_SLOW
)
settings.register_profile(
    "deep", max_examples=3000, deadline=None, print_blob=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
