set(LOCKSTEP_TEST_LABELS unit)
# The sweeps start the program some hundred times.
set(LOCKSTEP_TEST_TIMEOUT 900)
