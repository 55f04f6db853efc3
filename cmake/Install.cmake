# What `cmake --install` puts under the prefix: liblockstep, the program, the public headers (those that
# include/headers.txt names) and the
# package that find_package(Lockstep) reads. Headers name each other from the repository's root
# ("core/tensor/tensor.h"), so include/lockstep stands for it; <lockstep/lockstep.h> is all of them.
#
# A static library would have to find its dependencies again wherever it is linked, and a part of the
# library is of no use to others: neither is installed.

if(NOT BUILD_SHARED_LIBS OR LOCKSTEP_SANITIZE OR NOT TARGET lockstep_program)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep")
set(include_dirs "${CMAKE_INSTALL_INCLUDEDIR}" "${CMAKE_INSTALL_INCLUDEDIR}/lockstep")

foreach(target lockstep lockstep_plugin)
  target_include_directories(${target} INTERFACE "$<INSTALL_INTERFACE:${include_dirs}>")
endforeach()
set_target_properties(lockstep_plugin PROPERTIES EXPORT_NAME plugin)
# The folder of LAPACK's reference implementation, which stands in none of the loader's.
set_target_properties(lockstep PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
file(RELATIVE_PATH bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
set_target_properties(lockstep_program PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")

install(TARGETS lockstep lockstep_plugin EXPORT LockstepTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS lockstep_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(EXPORT LockstepTargets NAMESPACE Lockstep:: DESTINATION "${package_dir}")

install(FILES "${PROJECT_SOURCE_DIR}/include/lockstep/lockstep.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/lockstep")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/headers.txt")
file(STRINGS "${PROJECT_SOURCE_DIR}/include/headers.txt" headers REGEX "\\.(h|cuh|inc)$")
list(FILTER headers EXCLUDE REGEX "^#")
foreach(header IN LISTS headers)
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "${PROJECT_SOURCE_DIR}/${header}"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/lockstep/${folder}")
endforeach()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/LockstepConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/LockstepConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
# Before 1.0 every minor version may change the API, as the library's SOVERSION says.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/LockstepConfig.cmake"
              "${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/source_location_shim.h"
        DESTINATION "${package_dir}")
