# Installs the tree BUILD under an empty PREFIX, so that no files of an earlier install remain.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${PREFIX}/bin/lockstep" ops mm
                OUTPUT_VARIABLE shown COMMAND_ERROR_IS_FATAL ANY)
if(NOT shown MATCHES "mm\\(Tensor self, Tensor mat2\\) -> Tensor")
  message(FATAL_ERROR "the installed program does not show mm: ${shown}")
endif()
