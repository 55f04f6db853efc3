# What texts that are compiled at run time begin with: headers of ours, as sources that return their text.

# lockstep_prelude_source(OUT HEADER FOLDER FUNCTION INPUTS): in OUT a source of FOLDER that defines FUNCTION,
# declared in FOLDER/FUNCTION.h. INPUTS are the headers that HEADER may include.
function(lockstep_prelude_source out header folder function)
  set(source "${CMAKE_BINARY_DIR}/generated/${folder}/${function}.cc")
  set(script "${PROJECT_SOURCE_DIR}/cmake/EmbedHeaders.cmake")
  string(REGEX REPLACE "^kernels/" "" namespace "${folder}")
  string(REGEX REPLACE "^compile/.*" "compiler" namespace "${namespace}")
  add_custom_command(
      OUTPUT "${source}"
      COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DHEADER=${header}"
              "-DDECLARED_IN=${folder}/${function}.h" "-DNAMESPACE=lockstep::${namespace}"
              "-DFUNCTION=${function}" "-DOUT=${source}" -P "${script}"
      DEPENDS ${ARGN} "${script}"
      COMMENT "The text of ${header}"
      VERBATIM)
  set(${out} "${source}" PARENT_SCOPE)
endfunction()

file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kernels/common/*.h"
     "${PROJECT_SOURCE_DIR}/kernels/cpu/*.h" "${PROJECT_SOURCE_DIR}/kernels/pointwise/*.h")
lockstep_prelude_source(LOCKSTEP_KERNEL_PRELUDE kernels/pointwise/loop_kernel.h kernels/cpu kernel_prelude
    ${headers} "${PROJECT_SOURCE_DIR}/core/base/host_device.h" "${PROJECT_SOURCE_DIR}/core/tensor/dtype.h")
list(FILTER headers EXCLUDE REGEX "/kernels/cpu/")
file(GLOB of_cuda CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kernels/cuda/*.cuh" "${PROJECT_SOURCE_DIR}/kernels/cuda/*.h"
     "${PROJECT_SOURCE_DIR}/kernels/pointwise/*.cuh" "${PROJECT_SOURCE_DIR}/kernels/cuda/*/*.cuh"
     "${PROJECT_SOURCE_DIR}/kernels/cuda/*/*.h")
list(APPEND headers ${of_cuda} "${PROJECT_SOURCE_DIR}/core/base/host_device.h" "${PROJECT_SOURCE_DIR}/core/tensor/dtype.h"
    "${PROJECT_SOURCE_DIR}/core/cuda/kernel.cuh" "${PROJECT_SOURCE_DIR}/core/cuda/fault.h"
    "${PROJECT_SOURCE_DIR}/core/base/philox.h" "${PROJECT_SOURCE_DIR}/core/tensor/random_position.h")
lockstep_prelude_source(LOCKSTEP_CUDA_KERNEL_PRELUDE kernels/pointwise/loop_kernel.cuh kernels/cuda kernel_prelude
    ${headers})
lockstep_prelude_source(LOCKSTEP_CUDA_ROW_PRELUDE kernels/pointwise/row_kernel.cuh kernels/cuda row_prelude
    ${headers})
lockstep_prelude_source(LOCKSTEP_KERNEL_HEADER core/cuda/kernel.cuh kernels/cuda kernel_header
    "${PROJECT_SOURCE_DIR}/core/cuda/kernel.cuh")
lockstep_prelude_source(LOCKSTEP_DEVICE_STD kernels/cuda/device_std.inc kernels/cuda device_std
    "${PROJECT_SOURCE_DIR}/kernels/cuda/device_std.inc")
file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/core/plugin/*.h")
lockstep_prelude_source(LOCKSTEP_PLUGIN_PRELUDE core/plugin/plugin_wrapper.h compile/native plugin_prelude
    ${headers})
