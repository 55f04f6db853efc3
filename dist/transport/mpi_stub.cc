// Replaces mpi_transport.cc in builds without MPI.

#include "core/base/check.h"
#include "dist/transport/mpi_transport.h"

namespace lockstep::dist {

bool has_mpi() noexcept { return false; }

std::unique_ptr<MpiTransport> connect_mpi(const MpiOptions&) {
  throw BackendError(
      "[mpi] this Lockstep was built without MPI. Install MPI's development files (Debian: "
      "libopenmpi-dev) and build it again.");
}

}  // namespace lockstep::dist
