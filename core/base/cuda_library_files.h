#pragma once

#include <string>
#include <vector>

namespace lockstep::cuda {

/// Where a library of NVIDIA's is looked for, in order: the folders of LOCKSTEP_CUDA_LIBRARIES
/// (separated by colons), where the system finds libraries, and the toolkit's folder by CUDA_HOME,
/// CUDA_PATH or at /usr/local/cuda.
std::vector<std::string> library_files(const std::string& name);
/// The file of the library that a function is in, or `otherwise` where that cannot be told.
std::string file_of_function(void* function, const std::string& otherwise);

}  // namespace lockstep::cuda
