#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "dist/nccl/nccl_config.h"
#include "dist/nccl/nccl_library.h"

namespace lockstep::dist {

/// Describes a wait for NCCL: its time limit, and how it is named in errors.
struct NcclWait {
  using Clock = std::chrono::steady_clock;
  const char* op = "";
  std::string what;  ///< "the communicator of group world"
  Clock::time_point deadline;
  /// Called repeatedly while waiting; throws to end the wait, for instance after the job failed.
  std::function<void()> still_wanted;
};

/// One rank's part of a non-blocking NCCL communicator. Functions throw `nccl_error` if NCCL
/// reports an error, and, if the communicator was aborted, the error for which it was, or
/// DistError.
///
/// Thread-safe: one thread may wait in it while another aborts it.
class NcclCommunicator {
 public:
  using Pointer = std::unique_ptr<NcclCommunicator>;

  /// Starts to create a communicator of `size` ranks, all of which call it with the same `ids`, of
  /// which there are several only where the library can scale; they must not be used again. The
  /// rank's device must be the thread's current one, here and in `launch`. The communicator is
  /// usable once `is_ready` returns true.
  static Pointer create(std::shared_ptr<const NcclLibrary> library, int size, int rank,
                        std::vector<nccl::UniqueId> ids, const NcclConfig& config);
  /// Aborts the communicator unless `finish` or `abort` was called.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Whether NCCL has completed the last request. Never blocks; throws errors found meanwhile.
  bool is_ready();
  /// Polls until `is_ready`; throws TimeoutError after the deadline.
  void wait_ready(const NcclWait& wait);

  /// Runs `calls` between ncclGroupStart and ncclGroupEnd. The work is queued on its stream when
  /// `is_ready` returns true.
  void launch(const std::function<void(nccl::Comm*)>& calls);

  /// Returns a communicator of the ranks that pass the same color, ordered by key; null for
  /// nccl::kNoColor. Collective. If it fails, this communicator is aborted too.
  Pointer split(int color, int key, const NcclConfig& config, const NcclWait& wait);
  /// Returns a communicator without the `excluded` ranks; called by all others. Aborts operations
  /// in progress on this one. Throws BackendError if the library is too old.
  Pointer shrink(std::vector<int> excluded, const NcclConfig& config, const NcclWait& wait);

  /// Registers memory with NCCL and returns its handle; null for 0 bytes.
  void* register_buffer(void* data, size_t bytes);
  /// Does nothing once the communicator has ended.
  void deregister_buffer(void* handle) noexcept;

  /// Registers memory of ncclMemAlloc as a window of symmetric memory. Collective, with the same
  /// number of bytes on all ranks. NCCL sets `window` at some time before the end.
  void register_window(void* data, size_t bytes, nccl::Window*& window, const NcclWait& wait);
  /// Does nothing once the communicator has ended.
  void deregister_window(nccl::Window* window) noexcept;

  /// Starts ncclCommFinalize; no operation may follow.
  void finalize() noexcept;
  /// Called after `finalize`: waits until the operations of all ranks have ended and destroys the
  /// communicator; aborts it after the deadline or on an error.
  void finish(const NcclWait& wait) noexcept;
  /// Aborts the communicator and its operations at once, for an error if there was one. Does
  /// nothing if it has ended.
  void abort(std::exception_ptr reason = {}) noexcept;

 private:
  NcclCommunicator(std::shared_ptr<const NcclLibrary> library, nccl::Comm* comm)
      : library_(std::move(library)), comm_(comm) {}

  const nccl::Functions& functions() const { return library_->functions; }
  /// Waits until NCCL has set `made` and the new communicator is ready, and takes it over.
  Pointer take(nccl::Comm*& made, const NcclWait& wait);
  nccl::Comm* checked() const LS_REQUIRES(lock_);
  void check(nccl::Result result, const char* function) const LS_REQUIRES(lock_);

  const std::shared_ptr<const NcclLibrary> library_;
  Mutex lock_;                             // held during every call with comm_
  nccl::Comm* comm_ LS_GUARDED_BY(lock_);  ///< null when ended
  std::exception_ptr reason_ LS_GUARDED_BY(lock_);
  /// Communicators made from this one. NCCL sets the elements some time after the call.
  std::deque<nccl::Comm*> made_ LS_GUARDED_BY(lock_);
};

/// Converts to NCCL's struct, which points into `config`.
nccl::Config native_config(const NcclConfig& config);

}  // namespace lockstep::dist
