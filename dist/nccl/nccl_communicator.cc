#include "dist/nccl/nccl_communicator.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/base/check.h"

namespace lockstep::dist {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kFirstPoll{20};
constexpr microseconds kLongestPoll{2000};

bool is_fine(nccl::Result result) {
  return result == nccl::Result::kSuccess || result == nccl::Result::kInProgress;
}

}  // namespace

nccl::Config native_config(const NcclConfig& config) {
  nccl::Config native;
  native.blocking = 0;
  native.min_ctas = config.min_ctas.value_or(nccl::kUnset);
  native.max_ctas = config.max_ctas.value_or(nccl::kUnset);
  native.cga_cluster_size = config.cga_cluster_size.value_or(nccl::kUnset);
  if (!config.net_name.empty()) native.net_name = config.net_name.c_str();
  native.split_share = config.split_share ? 1 : 0;
  native.traffic_class = config.traffic_class.value_or(nccl::kUnset);
  return native;
}

NcclCommunicator::Pointer NcclCommunicator::create(std::shared_ptr<const NcclLibrary> library,
                                                   int size, int rank,
                                                   std::vector<nccl::UniqueId> ids,
                                                   const NcclConfig& config) {
  nccl::Config native = native_config(config);
  nccl::Comm* comm = nullptr;
  const nccl::Functions& functions = library->functions;
  const bool scales = ids.size() > 1;
  const nccl::Result result =
      scales ? functions.ncclCommInitRankScalable(&comm, size, rank, static_cast<int>(ids.size()),
                                                  ids.data(), &native)
             : functions.ncclCommInitRankConfig(&comm, size, ids.front(), rank, &native);
  Pointer made(new NcclCommunicator(std::move(library), comm));
  {
    const MutexLock guard(made->lock_);
    made->check(result, scales ? "ncclCommInitRankScalable" : "ncclCommInitRankConfig");
  }
  return made;
}

NcclCommunicator::~NcclCommunicator() { abort(); }

nccl::Comm* NcclCommunicator::checked() const {
  if (comm_ == nullptr && reason_) std::rethrow_exception(reason_);
  LS_CHECK(comm_ != nullptr, DistError, "[nccl] the communicator was aborted.");
  return comm_;
}

void NcclCommunicator::check(nccl::Result result, const char* function) const {
  if (!is_fine(result)) {
    std::rethrow_exception(nccl_error(*library_, result, function, comm_));
  }
}

bool NcclCommunicator::is_ready() {
  const MutexLock guard(lock_);
  nccl::Result state = nccl::Result::kSuccess;
  check(functions().ncclCommGetAsyncError(checked(), &state), "ncclCommGetAsyncError");
  check(state, "an operation under way");
  return state == nccl::Result::kSuccess;
}

void NcclCommunicator::wait_ready(const NcclWait& wait) {
  microseconds pause = kFirstPoll;
  while (!is_ready()) {
    if (wait.still_wanted) wait.still_wanted();
    LS_CHECK(NcclWait::Clock::now() < wait.deadline, TimeoutError,
             "[{}] {}: NCCL did not get ready within the time limit. Another rank did not come, "
             "or cannot be reached. NCCL_DEBUG=INFO tells what NCCL tries.",
             wait.op, wait.what);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPoll);
  }
}

void NcclCommunicator::launch(const std::function<void(nccl::Comm*)>& calls) {
  const MutexLock guard(lock_);
  nccl::Comm* const comm = checked();
  check(functions().ncclGroupStart(), "ncclGroupStart");
  try {
    calls(comm);
  } catch (...) {
    // The thread must leave the NCCL group; the first error is the one to report.
    (void)functions().ncclGroupEnd();
    throw;
  }
  check(functions().ncclGroupEnd(), "ncclGroupEnd");
}

NcclCommunicator::Pointer NcclCommunicator::take(nccl::Comm*& made, const NcclWait& wait) {
  for (microseconds pause = kFirstPoll; made == nullptr;
       pause = std::min(2 * pause, kLongestPoll)) {
    if (wait.still_wanted) wait.still_wanted();
    LS_CHECK(NcclWait::Clock::now() < wait.deadline, TimeoutError,
             "[{}] {}: NCCL gave no communicator within the time limit.", wait.op, wait.what);
    std::this_thread::sleep_for(pause);
  }
  Pointer result(new NcclCommunicator(library_, std::exchange(made, nullptr)));
  result->wait_ready(wait);
  return result;
}

NcclCommunicator::Pointer NcclCommunicator::split(int color, int key, const NcclConfig& config,
                                                  const NcclWait& wait) {
  nccl::Config native = native_config(config);
  nccl::Comm** made = nullptr;
  try {
    {
      const MutexLock guard(lock_);
      made = &made_.emplace_back(nullptr);
      check(functions().ncclCommSplit(checked(), color, key, made, &native), "ncclCommSplit");
    }
    wait_ready(wait);
    return color == nccl::kNoColor ? nullptr : take(*made, wait);
  } catch (...) {
    // First, so that NCCL does not set *made later. Who uses the communicator now, as the watch
    // does, may be the first to tell the job why.
    abort(std::current_exception());
    if (made != nullptr && *made != nullptr)
      (void)functions().ncclCommAbort(std::exchange(*made, nullptr));
    throw;
  }
}

NcclCommunicator::Pointer NcclCommunicator::shrink(std::vector<int> excluded,
                                                   const NcclConfig& config, const NcclWait& wait) {
  LS_CHECK(library_->can_shrink(), BackendError,
           "[shrink] {} cannot leave out ranks: expected NCCL 2.27.0 or newer, got {}. Start the "
           "job anew with fewer ranks.",
           library_->file, nccl_version_text(library_->version));
  nccl::Config native = native_config(config);
  nccl::Comm** made = nullptr;
  {
    const MutexLock guard(lock_);
    made = &made_.emplace_back(nullptr);
    check(functions().ncclCommShrink(checked(), excluded.data(), static_cast<int>(excluded.size()),
                                     made, &native, nccl::kShrinkAbort),
          "ncclCommShrink");
  }
  return take(*made, wait);  // without is_ready(): this communicator has failed
}

void* NcclCommunicator::register_buffer(void* data, size_t bytes) {
  void* handle = nullptr;
  if (bytes == 0) return handle;
  const MutexLock guard(lock_);
  check(functions().ncclCommRegister(checked(), data, bytes, &handle), "ncclCommRegister");
  return handle;
}

void NcclCommunicator::deregister_buffer(void* handle) noexcept {
  const MutexLock guard(lock_);
  if (comm_ != nullptr && handle != nullptr) {
    (void)functions().ncclCommDeregister(comm_, handle);
  }
}

void NcclCommunicator::register_window(void* data, size_t bytes, nccl::Window*& window,
                                       const NcclWait& wait) {
  {
    const MutexLock guard(lock_);
    check(
        functions().ncclCommWindowRegister(checked(), data, bytes, &window, nccl::kWindowSymmetric),
        "ncclCommWindowRegister");
  }
  wait_ready(wait);
}

void NcclCommunicator::deregister_window(nccl::Window* window) noexcept {
  const MutexLock guard(lock_);
  if (comm_ != nullptr && window != nullptr) {
    (void)functions().ncclCommWindowDeregister(comm_, window);
  }
}

void NcclCommunicator::finalize() noexcept {
  const MutexLock guard(lock_);
  // Errors are found by `finish`.
  if (comm_ != nullptr) (void)functions().ncclCommFinalize(comm_);
}

void NcclCommunicator::finish(const NcclWait& wait) noexcept {
  try {
    wait_ready(wait);
    const MutexLock guard(lock_);
    if (comm_ != nullptr) (void)functions().ncclCommDestroy(std::exchange(comm_, nullptr));
  } catch (...) {
    // Called from destructors, which cannot report errors: free the communicator in any case.
    abort();
  }
}

void NcclCommunicator::abort(std::exception_ptr reason) noexcept {
  const MutexLock guard(lock_);
  if (comm_ == nullptr) return;
  reason_ = std::move(reason);
  (void)functions().ncclCommAbort(std::exchange(comm_, nullptr));
}

}  // namespace lockstep::dist
