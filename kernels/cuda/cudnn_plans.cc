#include "kernels/cuda/cudnn_plans.h"

#include <fmt/format.h>

#include "core/cuda/runtime.h"
#include "core/device/kernel_scope.h"
#include "core/device/slow_paths.h"

namespace lockstep::cuda {

void note_without_cudnn(std::string_view what, const std::string& reason) {
  count_slow_path(fmt::format("{} on cuda without cuDNN", what), [&] { return reason; });
}

#ifdef LS_HAS_CUDNN

CudnnCall::CudnnCall()
    : context(runtime_of(kernel_stream().device).context(kernel_stream().device.index)) {
  const Stream on = kernel_stream();
  device = on.device.index;
  stream = static_cast<cudaStream_t>(runtime_of(on.device).native(on));
  capability = context.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
}

bool has_cudnn() {
  const LoadedCudnn& loaded = cudnn().loaded();
  if (loaded.reason.empty()) return true;
  note_without_cudnn("attention and convolutions", loaded.reason);
  return false;
}

#endif  // LS_HAS_CUDNN

}  // namespace lockstep::cuda
