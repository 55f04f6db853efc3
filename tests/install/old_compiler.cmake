# The package refuses a compiler that is too old, and names those that it takes. CONFIG:
# LockstepConfig.cmake of an installed tree.
set(CMAKE_CXX_COMPILER_ID GNU)
set(CMAKE_CXX_COMPILER_VERSION 11.4)
include("${CONFIG}")
if(NOT DEFINED Lockstep_FOUND OR Lockstep_FOUND)
  message(FATAL_ERROR "g++ 11 was accepted")
endif()
if(NOT Lockstep_NOT_FOUND_MESSAGE MATCHES "need g\\+\\+ 12 or clang 14.*got GNU 11.4")
  message(FATAL_ERROR "the message names no compilers: ${Lockstep_NOT_FOUND_MESSAGE}")
endif()
