// A device with streams: a name, a runtime, and the cpu's kernels, queued on the streams. It is
// registered when the library is loaded.

#include <lockstep/lockstep.h>

#include "worker_runtime.h"

using namespace lockstep;

namespace worker {
namespace {

/// Never destroyed: threads may wait in it while the process ends.
WorkerRuntime& runtime() {
  static auto* const instance = new WorkerRuntime(DeviceType::kPrivate2);
  return *instance;
}

[[maybe_unused]] const bool kReady = [] {
  name_device_type(DeviceType::kPrivate2, "worker");
  set_device_runtime(DeviceType::kPrivate2, &runtime());
  set_asynchronous(DeviceType::kPrivate2, true);
  dispatcher().set_backend(Key::kPrivate2, {Execution::kQueued, Key::kCPU});
  return true;
}();

/// For operators that cannot be queued, such as those whose result sizes depend on elements.
const Registration kFallback = register_cpu_fallback(Key::kPrivate2);

/// Kernels must not run while the library's static objects are destroyed.
struct FinishAtExit {
  ~FinishAtExit() { runtime().finish(); }
};
[[maybe_unused]] const FinishAtExit kFinish;

}  // namespace
}  // namespace worker

/// Kernels that the device's streams have run so far.
extern "C" int64_t worker_kernels() { return worker::runtime().kernels(); }
