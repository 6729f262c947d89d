"""Settings of the whole test run."""

import os

# Tests run on all cores already, one process each; the threads of small tensor operations would only fight over them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
