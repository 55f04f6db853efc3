#include "core/tensor/tracked_tensors.h"

#include <pthread.h>

#include <unordered_set>

#include "core/base/mutex.h"
#include "core/tensor/tensor.h"

namespace lockstep {

namespace {

struct Registry {
  Mutex mutex;
  std::unordered_set<const TensorImpl*> tensors LS_GUARDED_BY(mutex);
};
Registry& registry() {
  static auto* const instance = new Registry();  // leaked: static tensors are destroyed late
  return *instance;
}

// Not analysed: the mutex is held across the fork.
[[maybe_unused]] const bool kPreparedForFork =
    pthread_atfork([]() LS_NO_THREAD_SAFETY_ANALYSIS { registry().mutex.lock(); },
                   []() LS_NO_THREAD_SAFETY_ANALYSIS { registry().mutex.unlock(); },
                   []() LS_NO_THREAD_SAFETY_ANALYSIS { registry().mutex.unlock(); }) == 0;

}  // namespace

TrackViews::TrackViews() noexcept { detail::view_trackers.fetch_add(1); }
TrackViews::~TrackViews() { detail::view_trackers.fetch_sub(1); }

void each_tracked_tensor(FunctionRef<void(const TensorImpl&)> visit) {
  Registry& all = registry();
  const MutexLock lock(all.mutex);
  for (const TensorImpl* tensor : all.tensors) visit(*tensor);
}

namespace detail {

void track(TensorImpl& tensor) {
  Registry& all = registry();
  const MutexLock lock(all.mutex);
  all.tensors.insert(&tensor);
  tensor.tracked = true;
}

void untrack(const TensorImpl& tensor) noexcept {
  Registry& all = registry();
  const MutexLock lock(all.mutex);
  all.tensors.erase(&tensor);
}

}  // namespace detail

}  // namespace lockstep
