# What `lockstep report` puts into its pages: our style and program, and dygraphs, a plotting library
# (MIT), as the Debian package libjs-dygraphs has it. Without the package pages have no curves, and say so.

find_file(LOCKSTEP_DYGRAPHS_PROGRAM dygraph.min.js PATH_SUFFIXES share/javascript/dygraphs)
find_file(LOCKSTEP_DYGRAPHS_STYLE dygraph.min.css PATH_SUFFIXES share/javascript/dygraphs)
find_file(LOCKSTEP_DYGRAPHS_LICENSE copyright PATH_SUFFIXES share/doc/libjs-dygraphs)
mark_as_advanced(LOCKSTEP_DYGRAPHS_PROGRAM LOCKSTEP_DYGRAPHS_STYLE LOCKSTEP_DYGRAPHS_LICENSE)

set(page "${PROJECT_SOURCE_DIR}/train/page")
set(page_inputs "${page}/page.css" "${page}/page.js")
set(page_plot "")
set(LOCKSTEP_HAVE_DYGRAPHS OFF)
# Its licence must be in each copy, so nothing of it is embedded without.
if(LOCKSTEP_DYGRAPHS_PROGRAM AND LOCKSTEP_DYGRAPHS_STYLE AND LOCKSTEP_DYGRAPHS_LICENSE)
  set(LOCKSTEP_HAVE_DYGRAPHS ON)
  set(page_plot "-DPLOT_PROGRAM=${LOCKSTEP_DYGRAPHS_PROGRAM}" "-DPLOT_STYLE=${LOCKSTEP_DYGRAPHS_STYLE}"
                "-DPLOT_LICENSE=${LOCKSTEP_DYGRAPHS_LICENSE}")
  list(APPEND page_inputs "${LOCKSTEP_DYGRAPHS_PROGRAM}" "${LOCKSTEP_DYGRAPHS_STYLE}"
       "${LOCKSTEP_DYGRAPHS_LICENSE}")
endif()

set(LOCKSTEP_PAGE_ASSETS "${CMAKE_BINARY_DIR}/generated/train/page/assets.cc")
add_custom_command(
    OUTPUT "${LOCKSTEP_PAGE_ASSETS}"
    COMMAND "${CMAKE_COMMAND}" "-DSTYLE=${page}/page.css" "-DPROGRAM=${page}/page.js" ${page_plot}
            "-DOUT=${LOCKSTEP_PAGE_ASSETS}" -P "${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake"
    DEPENDS ${page_inputs} "${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake"
    COMMENT "what report's pages are made of"
    VERBATIM)
