# Communication between processes: on where MPI is found. lockstep_mpi carries its headers to the
# file that wraps them, and the library to whoever links ours.

if(LOCKSTEP_WITH_MPI)
  # The C interface is used alone.
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(NOT MPI_CXX_FOUND)
  return()
endif()

add_library(lockstep_mpi INTERFACE)
target_link_libraries(lockstep_mpi INTERFACE MPI::MPI_CXX)
