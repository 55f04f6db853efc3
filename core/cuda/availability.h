#pragma once

#include <string>
#include <vector>

namespace lockstep::cuda {

/// What there is of the cuda device in this build and on this machine.
struct Availability {
  bool compiled = false;  ///< whether the build has it
  std::string reason;     ///< why no device can be used, without a full stop; "" where one can
  std::vector<std::string> devices;  ///< "NVIDIA H200, 139.8 GiB", by index
  std::string driver;                ///< the newest CUDA that the driver knows: "13.0"; or ""
};

/// Loads the driver if nothing has yet. Thread-safe. In a process forked from one that had loaded
/// it, CUDA cannot be used, and this says so.
Availability availability();

}  // namespace lockstep::cuda
