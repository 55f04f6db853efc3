# Packages, which `./dev package` makes with CPack of a built tree:
#   DEB  lockstep (program and library), lockstep-dev (headers, CMake, pkg-config), lockstep-doc
#   TGZ  one archive of all of it that runs where it is unpacked: with the libraries that it needs, all
#        but glibc and GCC's run time, and without MPI, whose plug-ins have paths of their own

if(NOT TARGET lockstep_completions)
  return()
endif()

# --- the program and library of the archive ------------------------------------------------------------

# The objects of the library, linked once more. An RPATH, unlike a RUNPATH, is also searched for what the
# libraries beside it need themselves.
set(portable "${PROJECT_BINARY_DIR}/portable")
add_library(lockstep_portable SHARED EXCLUDE_FROM_ALL ${folder_objects} $<TARGET_OBJECTS:lockstep_without_mpi>
            "${PROJECT_BINARY_DIR}/generated/build_identity.cc")
add_dependencies(lockstep_portable lockstep)
target_link_libraries(lockstep_portable PRIVATE lockstep_settings)
if(TARGET lockstep_protos)
  target_link_libraries(lockstep_portable PRIVATE lockstep_proto_headers)
endif()
add_executable(lockstep_portable_program EXCLUDE_FROM_ALL $<TARGET_OBJECTS:lockstep_program>)
target_link_libraries(lockstep_portable_program PRIVATE lockstep_portable lockstep_settings)
set_target_properties(lockstep_portable PROPERTIES
    OUTPUT_NAME lockstep LINKER_LANGUAGE CXX
    VERSION "${PROJECT_VERSION}" SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}"
    LIBRARY_OUTPUT_DIRECTORY "${portable}/lib" BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
set_target_properties(lockstep_portable_program PROPERTIES
    OUTPUT_NAME lockstep LINKER_LANGUAGE CXX
    RUNTIME_OUTPUT_DIRECTORY "${portable}/bin" BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib")
lockstep_exports(lockstep_portable)
foreach(target lockstep_portable lockstep_portable_program)
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endforeach()

# cmake/package/portable_tree puts there what is linked, stripped, with the libraries that it needs.
install(DIRECTORY "${PROJECT_BINARY_DIR}/portable-tree/" DESTINATION . USE_SOURCE_PERMISSIONS
        COMPONENT portable EXCLUDE_FROM_ALL)

# --- CPack -----------------------------------------------------------------------------------------

include("${PROJECT_SOURCE_DIR}/cmake/package/packager.cmake")
lockstep_packager("${PROJECT_SOURCE_DIR}" packager)
set(LOCKSTEP_PACKAGER "${packager}" CACHE STRING "Who makes the packages, as Debian's field Maintainer has it")
set(LOCKSTEP_PACKAGE_RELEASE 1 CACHE STRING "Number of the packages of one version")

set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_VENDOR Lockstep)
set(CPACK_PACKAGE_CONTACT "${LOCKSTEP_PACKAGER}")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# Says which components each generator packs.
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_SOURCE_DIR}/cmake/package/components.cmake")

# Debian's files that no other install has: copyright, changelog, lintian's overrides.
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/package/debian.cmake")
set(CPACK_LOCKSTEP_SOURCE_DIR "${PROJECT_SOURCE_DIR}")
set(CPACK_LOCKSTEP_BINARY_DIR "${PROJECT_BINARY_DIR}")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE "${LOCKSTEP_PACKAGE_RELEASE}")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${LOCKSTEP_PACKAGER}")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(version "${PROJECT_VERSION}-${LOCKSTEP_PACKAGE_RELEASE}")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME lockstep)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/debian/triggers" CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/debian/triggers")
# The library looks for LAPACK in the reference implementation's own folder; the alternatives that
# dpkg-shlibdeps allows would give other bits.
if(TARGET lockstep::lapack)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libblas3, liblapack3")
  get_filename_component(lapack_dir "${LOCKSTEP_lapack_LIBRARY}" DIRECTORY)
  get_filename_component(blas_dir "${LOCKSTEP_blas_LIBRARY}" DIRECTORY)
  set(CPACK_LOCKSTEP_RUNPATH "${lapack_dir}:${blas_dir}")
endif()
if(TARGET lockstep_mpi)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "lockstep-doc, openmpi-bin")
else()
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "lockstep-doc")
endif()
# The first line of each is Debian's synopsis.
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "distributed data-parallel training engine
Lockstep trains GPT-2 and Llama on text, ResNets and perceptrons on tables, on
one core or over many hosts. The same config gives the same bits on any number
of threads and ranks, and after a run was killed and resumed.

This package contains the program and the library.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME lockstep-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "lockstep (= ${version})")
set(CPACK_COMPONENT_DEV_DESCRIPTION "distributed data-parallel training engine (development files)
Headers of the library with tensors, autograd, modules, optimizers and
communication between ranks, and what find_package and pkg-config read.")

set(CPACK_DEBIAN_DOC_PACKAGE_NAME lockstep-doc)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_COMPONENT_DOC_DESCRIPTION "distributed data-parallel training engine (documentation)
Pages about launching, runs, memory, numerics and the parts of the library,
configs of the examples, and a man page for each verb.")

set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_FILE_NAME "lockstep-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")

include(CPack)
