#include "benchmarks/null_gpu/null_gpu.h"
#include "core/base/error.h"

namespace lockstep {

void install_null_gpu() {
  throw DeviceError("[bench] this build has no CUDA. Build where nvcc is found.");
}

}  // namespace lockstep
