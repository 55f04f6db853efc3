#pragma once

#include <string>
#include <vector>

namespace lockstep::cuda {

/// Availability of cuda devices in this build and on this machine.
struct Availability {
  bool compiled = false;  ///< whether the build supports CUDA
  std::string reason;     ///< why no device can be used, without a full stop; "" if one can
  std::vector<std::string> devices;  ///< "NVIDIA H200, 139.8 GiB", by index
  std::string driver;                ///< newest CUDA that the driver supports: "13.0"; or ""
};

/// Loads the driver if it is not loaded yet. Thread-safe. A process forked after the driver was
/// loaded cannot use CUDA; then `reason` says so.
Availability availability();

}  // namespace lockstep::cuda
