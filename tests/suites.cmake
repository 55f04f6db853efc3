# Read by ctest: adds a test for each suite of a program, whose tests run in one process. A process takes
# 25 ms to start, longer than most tests take.

# suites_of(PROGRAM PREFIX FOLDER PROPERTY VALUE ...): names begin with PREFIX, tests run in FOLDER.
function(suites_of program prefix folder)
  if(NOT EXISTS "${program}")
    add_test("${prefix}NOT_BUILT" "${program}")
    return()
  endif()
  execute_process(COMMAND "${program}" --gtest_list_tests WORKING_DIRECTORY "${folder}"
                  OUTPUT_VARIABLE listed RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${program} --gtest_list_tests ended with ${status}")
  endif()
  # A suite begins a line with its name and a dot; its tests are indented.
  string(REGEX MATCHALL "\n[^ \n]+\\." suites "\n${listed}")
  foreach(suite IN LISTS suites)
    string(REGEX REPLACE "^\n(.*)\\.$" "\\1" suite "${suite}")
    add_test("${prefix}${suite}" "${program}" "--gtest_filter=${suite}.*")
    set_tests_properties("${prefix}${suite}" PROPERTIES WORKING_DIRECTORY "${folder}" ${ARGN})
  endforeach()
endfunction()
