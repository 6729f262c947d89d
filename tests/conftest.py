"""Settings of the whole test run."""

import os

from hypothesis import HealthCheck, settings

# Tests run on all cores already, one process each; the threads of small tensor operations would only fight over them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes says what else the machine is doing; what hangs is ended by pytest's own limit.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
