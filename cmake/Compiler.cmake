# Language, warnings, optimisation, sanitizers, linker and compiler cache: all of what decides how
# our own files are compiled. The interface library lockstep_settings carries it to every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
# In CI alone: a compiler that it does not know may warn of what is no error. Kept from the first
# configuration on, so that a tree is not compiled again because of a variable.
set(LOCKSTEP_WARNINGS "$ENV{BUILD_WARNINGS}" CACHE STRING "\"errors\": warnings end the build")
if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR AND LOCKSTEP_WARNINGS STREQUAL "errors")
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()
# -O3 is for the kernels alone; elsewhere it buys compile time and code size.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # Files that use a precompiled header are cached only with these two.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros "${CCACHE_PROGRAM}")
endif()

include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=lld LOCKSTEP_HAVE_LLD)
if(LOCKSTEP_HAVE_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# These reach generated code as well: one library has one instruction set and one floating-point rule.
add_compile_options(-ffp-contract=off)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v3)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The compiler looks for memory to free when it has taken 400 MB: a precompiled header alone is
  # more than it waits for otherwise, and a tenth of the time went there.
  add_compile_options(--param=ggc-min-heapsize=400000)
endif()
if(LOCKSTEP_SANITIZE)
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With a sanitizer's checks between them, a class's own new and delete are not seen to match.
    add_compile_options(-Wno-mismatched-new-delete)
    if(LOCKSTEP_SANITIZE MATCHES "address.*undefined")
      # A third of the time to compile the library went into these checks of every pointer: a null or
      # wild one ends in AddressSanitizer's report anyway.
      add_compile_options(-fno-sanitize=null,vptr,object-size)
    endif()
  endif()
endif()

add_library(lockstep_settings INTERFACE)
target_include_directories(lockstep_settings INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
target_compile_definitions(lockstep_settings INTERFACE LOCKSTEP_VERSION="${PROJECT_VERSION}")
# Designated initialisers may leave members at their defaults.
target_compile_options(lockstep_settings INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
target_compile_definitions(lockstep_settings INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
if(LOCKSTEP_SANITIZE STREQUAL "thread")
  target_compile_definitions(lockstep_settings INTERFACE LOCKSTEP_THREAD_SANITIZER)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # It has GCC's `unroll`, not its `ivdep`, and compares the pointers before such a loop instead. What is
  # deprecated libstdc++'s std::stable_sort calls.
  target_compile_options(lockstep_settings INTERFACE -Wno-unknown-pragmas -Wno-deprecated-declarations)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # -Wrestrict is wrong about std::string concatenation (GCC bug 105651), -Wmaybe-uninitialized about
  # an empty std::optional that is inlined (80635).
  target_compile_options(lockstep_settings INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    # Wrong about functions that take a key and return what a table holds (109642), and about vectors
    # that are inlined (105329).
    target_compile_options(lockstep_settings INTERFACE -Wno-dangling-reference -Wno-stringop-overread
                           -Wno-stringop-overflow -Wno-array-bounds)
  endif()
  # Calls inside the library neither go through the PLT nor can be replaced from outside, and its
  # thread-locals (guards, current stream) are reached without a call: it is linked at start, or loaded
  # where there is room for them (tests/core/base/thread_locals_test.cc). The folders with this property
  # use std::call_once, itself or in a library's headers, whose thread-locals are libstdc++'s: in a program
  # that loaded libstdc++ late, as Python with PyTorch does, they can only be reached with a call.
  target_compile_options(lockstep_settings INTERFACE -fno-semantic-interposition -fno-plt
      $<$<NOT:$<BOOL:$<TARGET_PROPERTY:LOCKSTEP_FOREIGN_THREAD_LOCALS>>>:-ftls-model=initial-exec>)
endif()
