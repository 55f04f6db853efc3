# What `cmake --install` puts under the prefix, in three components that Package.cmake makes packages of:
#   runtime  liblockstep, the program, its completions for shells
#   dev      the public headers (those that include/headers.txt names), what find_package(Lockstep) and
#            pkg-config read
#   doc      the documentation, the configs of the examples, man pages where lockstep_man was built
# Headers name each other from the repository's root ("core/tensor/tensor.h"), so include/lockstep stands for
# it; <lockstep/lockstep.h> is all of them.
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
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT dev)
install(TARGETS lockstep_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime)
if(TARGET lockstep_parquet)
  install(TARGETS lockstep_parquet LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime)
endif()
install(EXPORT LockstepTargets NAMESPACE Lockstep:: DESTINATION "${package_dir}" COMPONENT dev)

install(FILES "${PROJECT_SOURCE_DIR}/include/lockstep/lockstep.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/lockstep" COMPONENT dev)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/headers.txt")
file(STRINGS "${PROJECT_SOURCE_DIR}/include/headers.txt" headers REGEX "\\.(h|cuh|inc)$")
list(FILTER headers EXCLUDE REGEX "^#")
foreach(header IN LISTS headers)
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "${PROJECT_SOURCE_DIR}/${header}"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/lockstep/${folder}" COMPONENT dev)
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
        DESTINATION "${package_dir}" COMPONENT dev)

# The prefix is found from where the file lies, so that the tree may be moved.
file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/lockstep.pc.in" "${PROJECT_BINARY_DIR}/lockstep.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/lockstep.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)

# The program writes its completions itself, into the folders where the shells look.
set(completions "${PROJECT_BINARY_DIR}/completions")
set(completions_made)
foreach(entry IN ITEMS bash:share/bash-completion/completions/lockstep zsh:share/zsh/site-functions/_lockstep
                       fish:share/fish/vendor_completions.d/lockstep.fish)
  string(REGEX MATCH "^([a-z]+):(.*)/([^/]+)$" matched "${entry}")
  set(made "${completions}/${CMAKE_MATCH_1}/${CMAKE_MATCH_3}")
  file(MAKE_DIRECTORY "${completions}/${CMAKE_MATCH_1}")
  add_custom_command(OUTPUT "${made}" COMMAND lockstep_program completion ${CMAKE_MATCH_1} > "${made}"
                     DEPENDS lockstep_program COMMENT "completion for ${CMAKE_MATCH_1}" VERBATIM)
  install(FILES "${made}" DESTINATION "${CMAKE_MATCH_2}" COMPONENT runtime OPTIONAL)
  list(APPEND completions_made "${made}")
endforeach()
add_custom_target(lockstep_completions ALL DEPENDS ${completions_made})

install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        DESTINATION share/doc/lockstep COMPONENT doc)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION share/doc/lockstep COMPONENT doc
        FILES_MATCHING PATTERN "*.md")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/configs/examples" "${PROJECT_SOURCE_DIR}/configs/clusters"
        DESTINATION share/doc/lockstep/configs COMPONENT doc FILES_MATCHING PATTERN "*.txtpb")

# man pages, made from each verb's help. Not part of the usual build: it takes seconds after every change.
find_program(LOCKSTEP_HELP2MAN help2man)
mark_as_advanced(LOCKSTEP_HELP2MAN)
if(LOCKSTEP_HELP2MAN)
  set(man "${PROJECT_BINARY_DIR}/man")
  add_custom_command(OUTPUT "${man}/made"
                     COMMAND "${PROJECT_SOURCE_DIR}/cmake/package/man_pages" $<TARGET_FILE:lockstep_program>
                             "${man}"
                     DEPENDS lockstep_program "${PROJECT_SOURCE_DIR}/cmake/package/man_pages"
                     COMMENT "man pages" VERBATIM)
  add_custom_target(lockstep_man DEPENDS "${man}/made")
  install(DIRECTORY "${man}/" DESTINATION share/man/man1 COMPONENT doc OPTIONAL
          FILES_MATCHING PATTERN "*.1.gz")
endif()
