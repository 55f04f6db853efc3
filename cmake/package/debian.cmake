# Run by cpack after the components were installed: what Debian's packages have besides.

if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(ours "${CPACK_LOCKSTEP_SOURCE_DIR}/cmake/package")
set(version "${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(maintainer "${CPACK_DEBIAN_PACKAGE_MAINTAINER}")
string(TIMESTAMP year "%Y" UTC)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)

foreach(component IN ITEMS runtime dev doc)
  string(TOUPPER "${component}" upper)
  set(usr "${CPACK_TEMPORARY_DIRECTORY}/${component}/usr")
  set(doc "${usr}/share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  configure_file("${ours}/copyright.in" "${doc}/copyright" @ONLY)
  configure_file("${ours}/changelog.in" "${doc}/changelog.Debian" @ONLY)
  execute_process(COMMAND gzip -9n "${doc}/changelog.Debian" COMMAND_ERROR_IS_FATAL ANY)
endforeach()

set(usr "${CPACK_TEMPORARY_DIRECTORY}/runtime/usr")
# /usr/lib is searched anyway, and so are links to the libraries of MPI.
file(RPATH_REMOVE FILE "${usr}/bin/lockstep")
file(GLOB library "${usr}/lib/liblockstep.so.*.*.*")
file(RPATH_SET FILE "${library}" NEW_RPATH "${CPACK_LOCKSTEP_RUNPATH}")
# Debian's zsh does not look in site-functions.
file(RENAME "${usr}/share/zsh/site-functions" "${usr}/share/zsh/vendor-completions")
file(COPY "${CPACK_LOCKSTEP_BINARY_DIR}/sbom/lockstep.spdx.json" DESTINATION "${usr}/share/doc/lockstep")
file(MAKE_DIRECTORY "${usr}/share/lintian/overrides")
file(COPY_FILE "${ours}/lintian-overrides" "${usr}/share/lintian/overrides/lockstep")
