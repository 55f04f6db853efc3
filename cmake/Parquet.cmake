# liblockstep_parquet.so, which reads Parquet files, where Arrow's C++ libraries are: as find_package(Parquet)
# finds them, or in the Python package pyarrow, whose folder LOCKSTEP_PYARROW names. It is loaded with the
# first such file (data/parquet.h) and links nothing of ours.

if(NOT LOCKSTEP_WITH_PARQUET OR LOCKSTEP_SANITIZE OR NOT "data" IN_LIST LOCKSTEP_FOLDERS)
  return()
endif()

# lockstep_pyarrow(NAME LIBRARY): imported target NAME for a library of pyarrow. Wheels have no links that
# name libraries without their versions.
function(lockstep_pyarrow name library)
  file(GLOB found "${LOCKSTEP_PYARROW}/${library}.so*")
  if(NOT found OR NOT IS_DIRECTORY "${LOCKSTEP_PYARROW}/include/arrow")
    message(FATAL_ERROR "LOCKSTEP_PYARROW: ${LOCKSTEP_PYARROW} has no ${library} or no headers: expected "
                        "what `python3 -c 'import pyarrow; print(*pyarrow.__path__)'` prints.")
  endif()
  list(GET found 0 file)
  add_library(${name} SHARED IMPORTED)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${file}"
      INTERFACE_INCLUDE_DIRECTORIES "${LOCKSTEP_PYARROW}/include")
endfunction()

if(LOCKSTEP_PYARROW)
  lockstep_pyarrow(Arrow::arrow_shared libarrow)
  lockstep_pyarrow(Parquet::parquet_shared libparquet)
else()
  find_package(Parquet QUIET CONFIG)
endif()
if(NOT TARGET Parquet::parquet_shared)
  return()
endif()

add_library(lockstep_parquet MODULE data/parquet/parquet_module.cc)
target_include_directories(lockstep_parquet PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_options(lockstep_parquet PRIVATE -Wall -Wextra -fvisibility=hidden)
target_link_libraries(lockstep_parquet PRIVATE Parquet::parquet_shared Arrow::arrow_shared)
set_target_properties(lockstep_parquet PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
