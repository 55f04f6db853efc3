set(LOCKSTEP_TEST_LABELS unit)
# The kill sweep starts the program some hundred times.
set(LOCKSTEP_TEST_TIMEOUT 900)
