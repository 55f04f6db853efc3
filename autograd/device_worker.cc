#include "autograd/device_worker.h"

#include <pthread.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "autograd/graph_run.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"

namespace lockstep {

namespace {

thread_local constinit DeviceWorker* t_worker = nullptr;

/// Workers are never destroyed: their threads may outlive every static object.
struct Workers {
  Mutex mutex;
  std::map<std::pair<DeviceType, int>, DeviceWorker*> by_device LS_GUARDED_BY(mutex);
};
Workers& workers() {
  static Workers* const kInstance = new Workers();
  return *kInstance;
}

// Not analysed: the mutex is held across the fork. Before main(), so that no fork can come between.
// The child has none of the threads.
[[maybe_unused]] const bool kWorkersPreparedForFork =
    pthread_atfork([]() LS_NO_THREAD_SAFETY_ANALYSIS { workers().mutex.lock(); },
                   []() LS_NO_THREAD_SAFETY_ANALYSIS { workers().mutex.unlock(); },
                   []() LS_NO_THREAD_SAFETY_ANALYSIS {
                     workers().by_device.clear();
                     workers().mutex.unlock();
                   }) == 0;

}  // namespace

DeviceWorker& DeviceWorker::of(Device device) {
  Workers& all = workers();
  const MutexLock lock(all.mutex);
  DeviceWorker*& worker = all.by_device[{device.type, device.index}];
  if (worker == nullptr) {
    auto* const fresh = new DeviceWorker(device);
    start_thread("of backward", [fresh] {
      (void)pthread_setname_np(pthread_self(), "ls-backward");
      t_worker = fresh;
      fresh->run_until([] { return false; });
    }).detach();
    worker = fresh;
  }
  return *worker;
}

DeviceWorker* DeviceWorker::of_this_thread() noexcept { return t_worker; }

void DeviceWorker::submit(Task task) {
  const MutexLock lock(mutex_);
  tasks_.push_back(task);
  std::push_heap(tasks_.begin(), tasks_.end());
  changed_.notify_all();
}

void DeviceWorker::notify() {
  const MutexLock lock(mutex_);
  ++notifications_;
  changed_.notify_all();
}

void DeviceWorker::run_until(FunctionRef<bool()> done) {
  UniqueLock lock(mutex_);
  while (true) {
    // Read before `done()`, so that a notification after its evaluation is not missed.
    const uint64_t seen = notifications_;
    lock.unlock();
    if (done()) return;
    lock.lock();
    changed_.wait(lock,
                  [&]() LS_REQUIRES(mutex_) { return !tasks_.empty() || notifications_ != seen; });
    if (tasks_.empty()) continue;
    std::pop_heap(tasks_.begin(), tasks_.end());
    const Task task = tasks_.back();
    tasks_.pop_back();
    lock.unlock();
    task.run->execute_on_worker(task.slot);
    lock.lock();
  }
}

DeviceWorker::StandIn::StandIn(DeviceWorker* worker) noexcept : worker_(t_worker, worker) {}

}  // namespace lockstep
