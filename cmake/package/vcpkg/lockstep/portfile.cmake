# A port for vcpkg, of the sources that it lies in (docs/install.md):
#   vcpkg install lockstep --overlay-ports=cmake/package/vcpkg
vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS FEATURES
    lapack LOCKSTEP_WITH_LAPACK
    mpi LOCKSTEP_WITH_MPI
    onednn LOCKSTEP_WITH_ONEDNN
    parquet LOCKSTEP_WITH_PARQUET
    zstd LOCKSTEP_WITH_ZSTD)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS -DBUILD_TESTING=OFF -DLOCKSTEP_WITH_BENCHMARK=OFF -DLOCKSTEP_WITH_CUDA=OFF ${FEATURE_OPTIONS})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME Lockstep CONFIG_PATH lib/cmake/Lockstep)
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES lockstep AUTO_CLEAN)

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
