# Compiles the schemas of configs, and those of formats that data reads. Imports and includes are written from the repository root:
# `import "configs/model.proto"`, `#include "configs/model.pb.h"`.

file(GLOB protos CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
     "${PROJECT_SOURCE_DIR}/configs/*.proto" "${PROJECT_SOURCE_DIR}/data/*/*.proto")
if(NOT protos OR NOT "configs" IN_LIST LOCKSTEP_FOLDERS)
  return()
endif()
find_package(Protobuf 3.21 REQUIRED)

set(generated "${CMAKE_BINARY_DIR}/generated")
foreach(proto IN LISTS protos)
  get_filename_component(folder "${generated}/${proto}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  string(REGEX REPLACE "\\.proto$" ".pb" stem "${proto}")
  # Schemas import each other and there are few: any change recompiles them all.
  add_custom_command(
      OUTPUT "${generated}/${stem}.cc" "${generated}/${stem}.h"
      COMMAND protobuf::protoc "--proto_path=${PROJECT_SOURCE_DIR}" "--cpp_out=${generated}"
              "${PROJECT_SOURCE_DIR}/${proto}"
      DEPENDS ${protos}
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      COMMENT "protoc ${proto}"
      VERBATIM)
  list(APPEND proto_sources "${generated}/${stem}.cc")
endforeach()

# The schema of configs with its comments, which generated code lacks, for programs that describe fields.
set(schema "${generated}/configs/schema.bin")
add_custom_command(
    OUTPUT "${schema}.cc"
    COMMAND protobuf::protoc "--proto_path=${PROJECT_SOURCE_DIR}" --include_imports
            --include_source_info "--descriptor_set_out=${schema}"
            "${PROJECT_SOURCE_DIR}/configs/run.proto"
    COMMAND "${CMAKE_COMMAND}" "-DFILE=${schema}" "-DOUT=${schema}.cc" -P
            "${PROJECT_SOURCE_DIR}/cmake/EmbedSchema.cmake"
    DEPENDS ${protos} "${PROJECT_SOURCE_DIR}/cmake/EmbedSchema.cmake"
    COMMENT "protoc: the schema's comments"
    VERBATIM)
list(APPEND proto_sources "${schema}.cc")

# SYSTEM: warnings in generated headers are not ours to fix.
add_library(lockstep_proto_headers INTERFACE)
target_include_directories(lockstep_proto_headers SYSTEM INTERFACE "${generated}")
target_link_libraries(lockstep_proto_headers INTERFACE protobuf::libprotobuf)

add_library(lockstep_protos OBJECT ${proto_sources})
target_link_libraries(lockstep_protos PRIVATE lockstep_proto_headers)
target_compile_options(lockstep_protos PRIVATE -w)
