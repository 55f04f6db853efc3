#include "core/cuda/kernel.h"

#include <deque>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"

namespace lockstep::cuda {

namespace {

struct Named {
  std::vector<const void*> images;
  std::string name;
};

struct KernelRegistry {
  Mutex mutex;
  std::deque<Named> kernels LS_GUARDED_BY(mutex){
      Named{{}, "none"}};  // by number; addresses stay valid
};
KernelRegistry& registry() {
  // Never destroyed: kernels of static storage duration may be used during static destruction.
  static auto* const instance = new KernelRegistry();
  return *instance;
}
const Named& named(uint32_t number) {
  const MutexLock lock(registry().mutex);
  return registry().kernels[number];
}

}  // namespace

Kernel::Kernel(std::span<const void* const> images, std::string name) {
  const MutexLock lock(registry().mutex);
  auto& kernels = registry().kernels;
  LS_CHECK(kernels.size() < kMost, InternalError, "[{}] more than {} kernels.", name, kMost);
  number_ = static_cast<uint32_t>(kernels.size());
  kernels.push_back({{images.begin(), images.end()}, std::move(name)});
}

const std::string& Kernel::name() const { return named(number_).name; }
std::span<const void* const> Kernel::images() const { return named(number_).images; }

std::vector<Kernel> Kernel::all() {
  const MutexLock lock(registry().mutex);
  std::vector<Kernel> all;
  for (uint32_t i = 1; i < registry().kernels.size(); ++i) all.push_back(Kernel(i));
  return all;
}

}  // namespace lockstep::cuda
