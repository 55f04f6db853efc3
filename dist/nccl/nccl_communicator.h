#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "dist/nccl/nccl_config.h"
#include "dist/nccl/nccl_library.h"

namespace lockstep::dist {

/// While something is waited for.
struct NcclWait {
  using Clock = std::chrono::steady_clock;
  const char* op = "";
  std::string what;  ///< "the communicator of group world"
  Clock::time_point deadline;
  /// Throws when there is no use in waiting any more.
  std::function<void()> still_wanted;
};

/// One rank's part of an NCCL communicator, non-blocking. Where NCCL reports an error, functions
/// throw what nccl_error makes of it; where it was aborted, DistError.
///
/// Thread-safe: one thread may wait in it while another aborts it.
class NcclCommunicator {
 public:
  using Pointer = std::unique_ptr<NcclCommunicator>;

  /// Starts to make that of `size` ranks, all of which do so with one id, and none again. The
  /// device of the rank must be the thread's current one, here and in `launch`. It is of use once
  /// `is_ready`.
  static Pointer create(std::shared_ptr<const NcclLibrary> library, int size, int rank,
                        const nccl::UniqueId& id, const NcclConfig& config);
  /// Aborts it, unless `finish` or `abort` was called.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Whether NCCL is through with what it was asked for last. Never blocks; throws what it found
  /// wrong since.
  bool is_ready();
  /// Polls until it is; throws TimeoutError after the deadline.
  void wait_ready(const NcclWait& wait);

  /// Calls `calls` between ncclGroupStart and ncclGroupEnd. `is_ready` tells when the work is in
  /// its stream.
  void launch(const std::function<void(nccl::Comm*)>& calls);

  /// That of the ranks that give the same color, by key; null with nccl::kNoColor. All ranks call
  /// it. Where it fails, this one is aborted, too.
  Pointer split(int color, int key, const NcclConfig& config, const NcclWait& wait);
  /// That of all ranks but some; the others call it. Ends what is under way here. Throws
  /// BackendError where the library is too old.
  Pointer shrink(std::vector<int> excluded, const NcclConfig& config, const NcclWait& wait);

  /// Tells NCCL of memory that it will see often; 0 bytes are nothing.
  void* register_buffer(void* data, size_t bytes);
  /// Does nothing once the communicator has ended.
  void deregister_buffer(void* handle) noexcept;

  /// Begins to end it; no operation may follow.
  void finalize() noexcept;
  /// After `finalize`: ends it when all ranks do and everything is through; aborts it after the
  /// deadline, or where something is wrong.
  void finish(const NcclWait& wait) noexcept;
  /// Ends it at once, with what is under way. Does nothing a second time.
  void abort() noexcept;

 private:
  NcclCommunicator(std::shared_ptr<const NcclLibrary> library, nccl::Comm* comm)
      : library_(std::move(library)), comm_(comm) {}

  const nccl::Functions& functions() const { return library_->functions; }
  /// What a call that makes another communicator has left in `made`, once that is ready.
  Pointer take(nccl::Comm*& made, const NcclWait& wait);
  nccl::Comm* checked() const;
  void check(nccl::Result result, const char* function) const;

  const std::shared_ptr<const NcclLibrary> library_;
  std::mutex lock_;   // of the handle, and of every call that takes it
  nccl::Comm* comm_;  // null when ended
  /// Where NCCL puts the communicators that come of this one, some time after the call.
  std::deque<nccl::Comm*> made_;
};

/// As NCCL takes it; points into `config`.
nccl::Config native_config(const NcclConfig& config);

}  // namespace lockstep::dist
