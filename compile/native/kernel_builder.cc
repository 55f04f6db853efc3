#include "compile/native/kernel_builder.h"

#include <deque>
#include <unordered_map>
#include <utility>

#include "core/base/cond_var.h"
#include "core/base/content_hash.h"
#include "core/base/files/regular_file.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"

namespace lockstep::compiler {

PendingKernel::~PendingKernel() {
  if (!module_.empty()) source_.compiler->release(module_.data());
}

void PendingKernel::make(const BuildLimits& limits) noexcept {
  try {
    const NativeFile file = build_native(source_, limits, place_);
    LoopKernel kernel = nullptr;
    if (source_.compiler != nullptr) {
      module_ = read_whole_file(file.path());
      kernel = module_.data();
    } else {
      library_.emplace(file.path());
      kernel = library_->find("lockstep_loop_kernel");
    }
    kernel_.store(kernel, std::memory_order_release);
    end({});
  } catch (const std::exception& error) {
    end(error.what());
  }
}

// Not inline: a waiter in another library would use a table of waiters that this one's notify does
// not know.
void PendingKernel::wait() const noexcept { done_.wait(false, std::memory_order_acquire); }

void PendingKernel::end(std::string failure) noexcept {
  failure_ = std::move(failure);
  done_.store(true, std::memory_order_release);
  done_.notify_all();
}

namespace {

std::string hash_of(const NativeSource& source) {
  ContentHasher hasher;
  hasher.add(source.text);
  for (const std::string& flag : source.flags) hasher.add(flag);
  return hasher.result().hex();
}

}  // namespace

/// The thread that makes kernels, and those that wait for it.
class KernelBuilder {
 public:
  KernelBuilder() = default;
  ~KernelBuilder() {
    ends_.store(true, std::memory_order_relaxed);
    {
      const MutexLock lock(mutex_);
      for (const auto& waiting : queue_) {
        if (const auto kernel = waiting.lock()) kernel->end("[compile] the process ends.");
      }
      queue_.clear();
    }
    changed_.notify_all();
    thread_.join();
  }
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;

  std::shared_ptr<const PendingKernel> request(NativeSource source) {
    const MutexLock lock(mutex_);
    std::erase_if(known_, [](const auto& each) { return each.second.expired(); });
    std::weak_ptr<PendingKernel>& known = known_[hash_of(source)];
    if (auto kernel = known.lock()) return kernel;
    auto kernel = std::make_shared<PendingKernel>(std::move(source), BuildPlace());
    if (thread_.left_behind()) {
      kernel->end("[compile] a forked process makes no kernels.");
      return kernel;
    }
    if (!thread_.started()) thread_.start("ls-kernels", [this] { run(); });
    known = kernel;
    queue_.push_back(kernel);
    changed_.notify_all();
    return kernel;
  }

 private:
  std::shared_ptr<PendingKernel> next() {
    UniqueLock lock(mutex_);
    for (;;) {
      if (ends_.load(std::memory_order_relaxed)) return nullptr;
      while (!queue_.empty()) {
        auto kernel = queue_.front().lock();
        queue_.pop_front();
        if (kernel) return kernel;
      }
      changed_.wait(lock);
    }
  }

  void run() {
    BuildLimits limits;
    limits.stops = [this] { return ends_.load(std::memory_order_relaxed); };
    while (const auto kernel = next()) kernel->make(limits);
  }

  std::atomic<bool> ends_ = false;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::weak_ptr<PendingKernel>> queue_ LS_GUARDED_BY(mutex_);
  /// By hash_of.
  std::unordered_map<std::string, std::weak_ptr<PendingKernel>> known_ LS_GUARDED_BY(mutex_);
  ServiceThread thread_;  ///< last: it uses the others
};

std::shared_ptr<const PendingKernel> request_kernel(NativeSource source) {
  static KernelBuilder builder;
  return builder.request(std::move(source));
}

}  // namespace lockstep::compiler
