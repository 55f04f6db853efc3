# Compiles SOURCE with the flags of LIB/pkgconfig/lockstep.pc alone, and runs it.
set(ENV{PKG_CONFIG_PATH} "${LIB}/pkgconfig")
execute_process(COMMAND "${PKG_CONFIG}" --validate lockstep COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${PKG_CONFIG}" --cflags --libs lockstep
                OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
file(REMOVE "${OUT}")
execute_process(COMMAND "${CXX}" -std=c++20 "${SOURCE}" ${flags} -o "${OUT}" COMMAND_ERROR_IS_FATAL ANY)
set(ENV{LD_LIBRARY_PATH} "${LIB}")
execute_process(COMMAND "${OUT}" COMMAND_ERROR_IS_FATAL ANY)
