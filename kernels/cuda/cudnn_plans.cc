#include "kernels/cuda/cudnn_plans.h"

#ifdef LS_HAS_CUDNN

#include <fmt/format.h>

#include <cstdio>
#include <set>

#include "core/base/environment_flag.h"
#include "core/base/log_text.h"
#include "core/base/mutex.h"
#include "core/cuda/runtime.h"
#include "core/device/kernel_scope.h"

namespace lockstep::cuda {

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

void note_without_cudnn(const char* what, const std::string& reason) {
  static const bool warns = environment_flag("LOCKSTEP_WARN_COPIES");
  if (!warns) return;
  static Mutex mutex;
  static std::set<std::string> said LS_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  if (!said.insert(what).second) return;
  write_log(stderr, fmt::format("slow: {} on cuda: computed without cuDNN: {}\n", what, reason));
}

}  // namespace lockstep::cuda

#endif
