# What `lockstep --version --json` says of its build (launcher/build_facts.h): included, it has the file
# made; as a script (cmake -P), it makes it, in every build, and changes it only after a commit or an edit.

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(commit "")
  set(modified false)
  execute_process(COMMAND git rev-parse --verify HEAD WORKING_DIRECTORY "${FOLDER}"
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  # A repository around an unpacked archive says nothing about it.
  execute_process(COMMAND git ls-files --error-unmatch CMakeLists.txt WORKING_DIRECTORY "${FOLDER}"
                  OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE foreign)
  if(failed OR foreign)
    set(commit "")
  else()
    execute_process(COMMAND git --no-optional-locks status --porcelain --untracked-files=no WORKING_DIRECTORY "${FOLDER}"
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      set(modified true)
    endif()
  endif()
  file(CONFIGURE OUTPUT "${OUT}" @ONLY CONTENT "#include \"launcher/build_facts.h\"

namespace lockstep::launcher {

BuildFacts build_facts() {
  return {.commit = \"@commit@\",
          .modified = @modified@,
          .compiler = \"@COMPILER@\",
          .build_type = \"@BUILD_TYPE@\",
          .processor = \"@PROCESSOR@\",
          .cuda = \"@CUDA@\",
          .mpi = \"@MPI@\",
          .onednn = \"@ONEDNN@\",
          .lapack = \"@LAPACK@\",
          .zstd = \"@ZSTD@\",
          .protobuf = \"@PROTOBUF@\"};
}

}  // namespace lockstep::launcher
")
  return()
endif()

# lockstep_version_of_file(OUT LIBRARY): "2.6" of libdnnl.so, a link to libdnnl.so.2.6.
function(lockstep_version_of_file out library)
  file(REAL_PATH "${library}" real)
  string(REGEX MATCH "[0-9.]+$" version "${real}")
  string(REGEX REPLACE "^\\." "" version "${version}")
  if(version STREQUAL "")
    set(version "unknown")
  endif()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

# lockstep_mpi_name(OUT): "Open MPI 4.1.4" of the MPI that was found.
function(lockstep_mpi_name out)
  set(name "MPI ${MPI_CXX_VERSION}")
  foreach(folder IN LISTS MPI_CXX_INCLUDE_DIRS)
    if(EXISTS "${folder}/mpi.h")
      file(STRINGS "${folder}/mpi.h" lines
           REGEX "^#define +(OMPI_(MAJOR|MINOR|RELEASE)_VERSION|MPICH_VERSION) ")
      if("${lines}" MATCHES "MPICH_VERSION +\"([^\"]+)\"")
        set(name "MPICH ${CMAKE_MATCH_1}")
      elseif("${lines}" MATCHES "MAJOR_VERSION +([0-9]+).*MINOR_VERSION +([0-9]+).*RELEASE_VERSION +([0-9]+)")
        set(name "Open MPI ${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
      endif()
      break()
    endif()
  endforeach()
  set(${out} "${name}" PARENT_SCOPE)
endfunction()

# lockstep_build_facts(TARGET): adds the file to the program TARGET.
function(lockstep_build_facts target)
  set(cuda "")
  set(mpi "")
  set(onednn "")
  set(lapack "")
  set(zstd "")
  if(TARGET lockstep_cuda)
    set(cuda "${CUDAToolkit_VERSION}")
  endif()
  if(TARGET lockstep_mpi)
    lockstep_mpi_name(mpi)
  endif()
  if(TARGET lockstep::onednn)
    lockstep_version_of_file(onednn "${LOCKSTEP_dnnl_LIBRARY}")
  endif()
  if(TARGET lockstep::lapack)
    lockstep_version_of_file(lapack "${LOCKSTEP_lapack_LIBRARY}")
  endif()
  if(TARGET lockstep::zstd)
    lockstep_version_of_file(zstd "${LOCKSTEP_zstd_LIBRARY}")
  endif()
  set(out "${PROJECT_BINARY_DIR}/generated/launcher/build_facts.cc")
  set(compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  add_custom_target(lockstep_build_facts
      COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${PROJECT_SOURCE_DIR}" "-DOUT=${out}" "-DCOMPILER=${compiler}"
              "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}" "-DPROCESSOR=${CMAKE_SYSTEM_PROCESSOR}" "-DCUDA=${cuda}"
              "-DMPI=${mpi}" "-DONEDNN=${onednn}" "-DLAPACK=${lapack}" "-DZSTD=${zstd}"
              "-DPROTOBUF=${Protobuf_VERSION}"
              -P "${PROJECT_SOURCE_DIR}/cmake/BuildFacts.cmake"
      BYPRODUCTS "${out}"
      COMMENT "what the program knows of its build" VERBATIM)
  target_sources(${target} PRIVATE "${out}")
  add_dependencies(${target} lockstep_build_facts)
endfunction()
