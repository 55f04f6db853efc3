#pragma once

#include <string>
#include <vector>

namespace lockstep::launcher {

/// One of the CUDA libraries other than the driver; they are opened at run time, not linked.
struct CudaLibrary {
  std::string name;     ///< "cuBLASLt"
  std::string version;  ///< "13.1.0"; empty if it was not found
  std::string file;     ///< path, empty if it was not found
};

/// Finds and opens cuBLASLt, cuDNN and NCCL as programs do: the newest major version first, in the
/// folders of LOCKSTEP_CUDA_LIBRARIES, then on the system's search path.
std::vector<CudaLibrary> find_cuda_libraries();
/// Path of the NCCL library for dist::load_nccl, which reports if it is missing or unusable.
std::string nccl_file();

}  // namespace lockstep::launcher
