# Compiles older_consumer.cc with the headers of the release RELEASED into OUT, links it with LIBRARY and runs it.
file(REMOVE_RECURSE "${OUT}")
file(ARCHIVE_EXTRACT INPUT "${RELEASED}" DESTINATION "${OUT}/headers")
get_filename_component(folder "${LIBRARY}" DIRECTORY)
execute_process(COMMAND "${CXX}" -std=c++20 "-I${OUT}/headers" "-I${OUT}/headers/include"
                        "${CMAKE_CURRENT_LIST_DIR}/older_consumer.cc" "${LIBRARY}" "-Wl,-rpath,${folder}"
                        -o "${OUT}/older_consumer"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${OUT}/older_consumer" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${ABI}" needs "${OUT}/older_consumer" COMMAND_ERROR_IS_FATAL ANY)
