# Several sources of one folder are compiled as one: most of the time to compile one of them alone goes
# into headers and templates that its neighbours need as well.

option(LOCKSTEP_UNITY
       "Compile several sources of a folder as one, for a quick build from scratch; OFF: each alone, for editing"
       ON)
# Enough to share most of the headers' cost, little enough that no unit takes more than 20 s and that
# the cores end together.
set(LOCKSTEP_UNITY_KIB 48 CACHE STRING "Source that is compiled as one unit, at least, in KiB")
set(LOCKSTEP_UNITY_EXCEPT "" CACHE STRING "Sources whose path matches this regular expression are compiled alone")
mark_as_advanced(LOCKSTEP_UNITY_KIB LOCKSTEP_UNITY_EXCEPT)

# lockstep_unity(TARGET [EXCEPT REGEX]): groups the target's sources by their folder, and cuts the
# groups. Sources whose path matches REGEX are compiled alone, and so are generated ones.
# Only the first source of a unit shows that it, and the header that it includes first, have all that
# they need; a build with LOCKSTEP_UNITY=OFF shows it of every one. structure/prelude_test.cc and
# header_check look at headers in every build.
function(lockstep_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 unity "" EXCEPT "")
  if(NOT LOCKSTEP_UNITY)
    return()
  endif()
  math(EXPR most "${LOCKSTEP_UNITY_KIB} * 1024")
  set(last_folder "")
  set(bytes 0)
  set(part 0)
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE name)
    if(NOT name MATCHES "\\.cc$" OR name MATCHES "^(\\.\\.|build)/" OR
       (unity_EXCEPT AND name MATCHES "${unity_EXCEPT}") OR
       (LOCKSTEP_UNITY_EXCEPT AND name MATCHES "${LOCKSTEP_UNITY_EXCEPT}"))
      continue()
    endif()
    get_filename_component(folder "${name}" DIRECTORY)
    file(SIZE "${path}" size)
    if(NOT folder STREQUAL last_folder)
      set(last_folder "${folder}")
      set(bytes 0)
      set(part 0)
    elseif(bytes GREATER_EQUAL most)
      set(bytes 0)
      math(EXPR part "${part} + 1")
    endif()
    math(EXPR bytes "${bytes} + ${size}")
    string(REPLACE "/" "_" group "${folder}")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${group}_${part})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Every source counts as a header of its unit.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
