#pragma once

#include <string>
#include <vector>

namespace lockstep::cuda {

/// Paths at which to look for NVIDIA's library `name`, in order: the folders of
/// LOCKSTEP_CUDA_LIBRARIES (separated by colons), the bare name (the system's search path), and
/// lib64 under CUDA_HOME, CUDA_PATH and /usr/local/cuda.
std::vector<std::string> library_files(const std::string& name);
/// The same for each major version of NVIDIA's library `name`, the newest first.
std::vector<std::string> library_files(const std::string& name, int newest, int oldest);
/// Path of the library that contains `function`, or `otherwise` if it is null or unknown.
std::string file_of_function(void* function, const std::string& otherwise);

}  // namespace lockstep::cuda
