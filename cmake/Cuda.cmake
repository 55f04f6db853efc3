# The cuda device: on where the CUDA toolkit is found. Of the toolkit, headers and nvcc are used, and
# nothing is linked: the driver is loaded when it is first needed, so that programs start on machines
# without one. Kernels are compiled to modules, which are data of the library.

if(LOCKSTEP_WITH_CUDA)
  find_package(CUDAToolkit 13 QUIET)
  find_program(LOCKSTEP_BIN2C bin2c HINTS "${CUDAToolkit_BIN_DIR}")
  mark_as_advanced(LOCKSTEP_BIN2C)
endif()
if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE OR NOT LOCKSTEP_BIN2C)
  return()
endif()

# The toolkit's headers, for the targets that wrap them.
add_library(lockstep_cuda INTERFACE)
target_include_directories(lockstep_cuda SYSTEM INTERFACE "${CUDAToolkit_INCLUDE_DIRS}")
# Some installations have CUPTI's headers apart.
find_path(LOCKSTEP_CUPTI_INCLUDE_DIR cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
          "${CUDAToolkit_TARGET_DIR}/extras/CUPTI/include")
mark_as_advanced(LOCKSTEP_CUPTI_INCLUDE_DIR)
if(LOCKSTEP_CUPTI_INCLUDE_DIR)
  target_include_directories(lockstep_cuda SYSTEM INTERFACE "${LOCKSTEP_CUPTI_INCLUDE_DIR}")
endif()

# What kernels are compiled to first, once for all GPUs: for compute capability 8.0 (Ampere), or an
# older one that LOCKSTEP_CUDA_ARCHITECTURES names. Drivers compile this intermediate form for GPUs
# that have no machine code here.
set(intermediate 80)
foreach(architecture IN LISTS LOCKSTEP_CUDA_ARCHITECTURES)
  if(architecture LESS intermediate)
    set(intermediate ${architecture})
  endif()
endforeach()
list(TRANSFORM LOCKSTEP_CUDA_ARCHITECTURES PREPEND "sm_" OUTPUT_VARIABLE machines)
list(JOIN machines "," machines)
set(lockstep_cuda_code "arch=compute_${intermediate},code=[compute_${intermediate},${machines}]")

# lockstep_cuda_modules(TARGET SOURCE...): compiles .cu files, and gives TARGET the header
# "FOLDER/NAME.fatbin.h" for each FOLDER/NAME.cu, in which kImage is the module. Warnings are errors.
function(lockstep_cuda_modules target)
  set(generated "${CMAKE_BINARY_DIR}/generated")
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${source}")
    string(REGEX REPLACE "\\.cu$" ".fatbin" name "${name}")
    set(image "${generated}/${name}")
    get_filename_component(folder "${image}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    # Only device code is kept, so the host compiler's version does not matter.
    add_custom_command(
        OUTPUT "${image}.h"
        COMMAND "${CUDAToolkit_NVCC_EXECUTABLE}" -fatbin -std=c++20 -O3 --fmad=false
                --expt-relaxed-constexpr -Werror all-warnings -compress-mode=size
                -ccbin "${CMAKE_CXX_COMPILER}" -allow-unsupported-compiler
                -gencode "${lockstep_cuda_code}"
                "-I${PROJECT_SOURCE_DIR}" -MD -MF "${image}.d" -MT "${image}.h"
                -o "${image}" "${source}"
        COMMAND "${LOCKSTEP_BIN2C}" --const --static --name kImage --type longlong "${image}"
                > "${image}.h"
        DEPENDS "${source}"
        DEPFILE "${image}.d"
        COMMENT "nvcc ${name}"
        VERBATIM)
    target_sources(${target} PRIVATE "${image}.h")
  endforeach()
  target_include_directories(${target} PRIVATE "${generated}")
endfunction()

# lockstep_cuda_image_list(HEADER SOURCE...): generates HEADER, which includes the module of each
# FOLDER/NAME.cu in a namespace NAME, and defines kImages, an array of all of them.
function(lockstep_cuda_image_list header)
  set(includes "")
  set(names "")
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${source}")
    get_filename_component(name "${source}" NAME_WE)
    string(REGEX REPLACE "\\.cu$" ".fatbin.h" path "${path}")
    string(APPEND includes "namespace ${name} {\n#include \"${path}\"\n}\n")
    string(APPEND names "    ${name}::kImage,\n")
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/${header}" @ONLY
       CONTENT "@includes@constexpr const void* kImages[] = {\n@names@};\n")
endfunction()
