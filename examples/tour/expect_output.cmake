# Runs PROGRAM, which must end with 0 and print what the file EXPECTED holds.
execute_process(COMMAND "${PROGRAM}"
                OUTPUT_VARIABLE printed ERROR_VARIABLE complaints RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${code}:\n${printed}${complaints}")
endif()
file(READ "${EXPECTED}" expected)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} printed\n${printed}\nbut ${EXPECTED} holds\n${expected}")
endif()
