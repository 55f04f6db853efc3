#pragma once

#include <string>
#include <vector>

namespace lockstep::launcher {

/// One of the libraries beside CUDA's driver, none of which is linked.
struct CudaLibrary {
  std::string name;     ///< "cuBLASLt"
  std::string version;  ///< "13.1.0"; empty where it was not found
  std::string file;     ///< where
};

/// cuBLASLt, cuDNN and NCCL, as a program that wants them finds them: the newest major version
/// first, in the folders of LOCKSTEP_CUDA_LIBRARIES, then where the system looks. Opens them.
std::vector<CudaLibrary> find_cuda_libraries();
/// NCCL's, for dist::load_nccl, which says what is wrong with it.
std::string nccl_file();

}  // namespace lockstep::launcher
