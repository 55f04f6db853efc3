# lockstep_exports(TARGET): what the shared library TARGET exports, and under which versions: cmake/exports.map.in
# with the list of what the public headers promise, which `./dev symbols` writes.

set(public_symbols "${PROJECT_SOURCE_DIR}/cmake/abi/public_symbols.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${public_symbols}")
file(STRINGS "${public_symbols}" LOCKSTEP_PUBLIC_SYMBOLS REGEX "^_Z")
list(JOIN LOCKSTEP_PUBLIC_SYMBOLS ";\n    " LOCKSTEP_PUBLIC_SYMBOLS)
configure_file("${PROJECT_SOURCE_DIR}/cmake/exports.map.in" "${PROJECT_BINARY_DIR}/exports.map" @ONLY)
unset(LOCKSTEP_PUBLIC_SYMBOLS)

# A tree of fewer folders (LOCKSTEP_FOLDERS) does not define all that is listed.
check_linker_flag(CXX LINKER:--undefined-version LOCKSTEP_HAVE_UNDEFINED_VERSION)

function(lockstep_exports target)
  set(map "${PROJECT_BINARY_DIR}/exports.map")
  # The library's calls of its own functions need no look-up by name when a program starts.
  target_link_options(${target} PRIVATE LINKER:-z,defs LINKER:-Bsymbolic-functions "LINKER:--version-script=${map}")
  if(LOCKSTEP_HAVE_UNDEFINED_VERSION)
    target_link_options(${target} PRIVATE LINKER:--undefined-version)
  endif()
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${map}")
endfunction()
