# Everything Lockstep links, as Debian and Ubuntu package it. All are required unless said.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(BZip2 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

# lockstep_find(NAME HEADER LIBRARY PACKAGE): imported target NAME for a library without a usable
# CMake package of its own.
function(lockstep_find name header library package)
  string(MAKE_C_IDENTIFIER "${library}" id)
  find_path(LOCKSTEP_${id}_INCLUDE_DIR ${header})
  find_library(LOCKSTEP_${id}_LIBRARY ${library})
  mark_as_advanced(LOCKSTEP_${id}_INCLUDE_DIR LOCKSTEP_${id}_LIBRARY)
  if(NOT LOCKSTEP_${id}_INCLUDE_DIR OR NOT LOCKSTEP_${id}_LIBRARY)
    message(FATAL_ERROR "${header} and lib${library} not found: install the package ${package}.")
  endif()
  add_library(${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES
      IMPORTED_LOCATION "${LOCKSTEP_${id}_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${LOCKSTEP_${id}_INCLUDE_DIR}")
endfunction()
# lockstep_find_optional(OPTION NAME HEADER LIBRARY PACKAGE): links a library that the build does without
# where OPTION is off or the library is missing.
function(lockstep_find_optional option name header library package)
  find_library(LOCKSTEP_${library}_LIBRARY ${library})
  mark_as_advanced(LOCKSTEP_${library}_LIBRARY)
  if(${option} AND LOCKSTEP_${library}_LIBRARY)
    lockstep_find(${name} ${header} ${library} ${package})
    target_link_libraries(lockstep_settings INTERFACE ${name})
  endif()
endfunction()
# oneDNN ships a CMake package, but Debian's demands OpenCL's development files, which a CPU build
# does not use.
lockstep_find_optional(LOCKSTEP_WITH_ONEDNN lockstep::onednn dnnl.hpp dnnl libdnnl-dev)
lockstep_find_optional(LOCKSTEP_WITH_ZSTD lockstep::zstd zstd.h zstd libzstd-dev)
# Factorizations of matrices: the reference implementation, which gives the same bits on every machine.
# Debian keeps it in a folder of its own and lets faster ones (OpenBLAS) stand in for it outside, so that
# folder is searched first and becomes a run path.
find_library(LOCKSTEP_lapack_LIBRARY lapack PATH_SUFFIXES lapack)
find_library(LOCKSTEP_blas_LIBRARY blas PATH_SUFFIXES blas)
mark_as_advanced(LOCKSTEP_lapack_LIBRARY LOCKSTEP_blas_LIBRARY)
if(LOCKSTEP_WITH_LAPACK AND LOCKSTEP_lapack_LIBRARY AND LOCKSTEP_blas_LIBRARY)
  foreach(part lapack blas)
    add_library(lockstep::${part} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(lockstep::${part} PROPERTIES IMPORTED_LOCATION "${LOCKSTEP_${part}_LIBRARY}")
    target_link_libraries(lockstep_settings INTERFACE lockstep::${part})
  endforeach()
endif()
lockstep_find(lockstep::xxhash xxhash.h xxhash libxxhash-dev)
lockstep_find(lockstep::utf8proc utf8proc.h utf8proc libutf8proc-dev)

target_link_libraries(lockstep_settings INTERFACE
    lockstep::xxhash lockstep::utf8proc fmt::fmt nlohmann_json::nlohmann_json CLI11::CLI11
    ZLIB::ZLIB LibLZMA::LibLZMA BZip2::BZip2 Threads::Threads)

if(LOCKSTEP_WITH_BENCHMARK)
  find_package(benchmark QUIET)
endif()
