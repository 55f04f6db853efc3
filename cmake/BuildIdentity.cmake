# The identity of a build (core/base/build_identity.h): included, it has the file made; as a script
# (cmake -P), it makes it, whenever a source has changed.

if(CMAKE_SCRIPT_MODE_FILE)
  file(STRINGS "${LIST}" sources)
  set(hashes "${FACTS}")
  foreach(source IN LISTS sources)
    file(SHA256 "${FOLDER}/${source}" hash)
    string(APPEND hashes "\n${source} ${hash}")
  endforeach()
  string(SHA256 identity "${hashes}")
  string(SUBSTRING "${identity}" 0 32 identity)
  file(WRITE "${OUT}" "#include \"core/base/build_identity.h\"\n\n\
namespace lockstep {\n\n\
const char* build_identity() noexcept { return \"${identity}\"; }\n\n\
}  // namespace lockstep\n")
  return()
endif()

# lockstep_build_identity(TARGET): adds the file to the library TARGET.
function(lockstep_build_identity target)
  set(patterns)
  foreach(folder IN ITEMS autograd configs core data dist kernels launcher nn profile train)
    foreach(suffix IN ITEMS cc cu cuh h proto)
      list(APPEND patterns "${PROJECT_SOURCE_DIR}/${folder}/*.${suffix}")
    endforeach()
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" ${patterns})
  list(SORT sources)
  list(TRANSFORM sources PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE files)
  set(list "${PROJECT_BINARY_DIR}/generated/build_sources.txt")
  list(JOIN sources "\n" lines)
  file(CONFIGURE OUTPUT "${list}" CONTENT "${lines}\n" @ONLY)
  list(JOIN LOCKSTEP_FOLDERS " " folders)
  string(CONCAT facts "${PROJECT_VERSION} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} "
                      "${CMAKE_SYSTEM_PROCESSOR} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS} "
                      "${LOCKSTEP_SANITIZE} ${folders}")
  foreach(part IN ITEMS lockstep_mpi lockstep_cuda lockstep::onednn lockstep::lapack lockstep_protos)
    if(TARGET ${part})
      string(APPEND facts " ${part}")
    endif()
  endforeach()
  set(out "${PROJECT_BINARY_DIR}/generated/build_identity.cc")
  set(script "${PROJECT_SOURCE_DIR}/cmake/BuildIdentity.cmake")
  add_custom_command(
      OUTPUT "${out}"
      COMMAND "${CMAKE_COMMAND}" "-DLIST=${list}" "-DFOLDER=${PROJECT_SOURCE_DIR}"
              "-DFACTS=${facts}" "-DOUT=${out}" -P "${script}"
      DEPENDS ${files} "${list}" "${script}"
      COMMENT "Hashing the sources" VERBATIM)
  target_sources(${target} PRIVATE "${out}")
endfunction()
