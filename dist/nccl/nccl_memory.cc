#include "dist/nccl/nccl_memory.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/tensor/stream.h"

namespace lockstep::dist {

namespace {

/// The text of an error, and of none an empty one.
template <class F>
std::string failure_of(const F& body) {
  try {
    body();
    return "";
  } catch (const BackendError& error) {
    return error.what();
  }
}

/// Owns one block, and ends with it.
class NcclMemory final : public Allocator {
 public:
  NcclMemory(const NcclJob& job, std::shared_ptr<NcclCommunicator> nccl)
      : library_(job.library),
        device_(job.device),
        launcher_(job.launcher),
        nccl_(std::move(nccl)),
        users_{current_stream(device_->device())} {}
  ~NcclMemory() override { release(); }

  /// Throws BackendError.
  void take(size_t bytes) {
    bytes_ = bytes;
    const NcclDevice::Scope scope(*device_);
    const nccl::Functions& functions = library_->functions;
    LS_CHECK(library_->can_allocate(), BackendError, "[nccl] {} has no ncclMemAlloc.",
             library_->file);
    const nccl::Result result = functions.ncclMemAlloc(&data_, bytes);
    if (result != nccl::Result::kSuccess) {
      data_ = nullptr;
      std::rethrow_exception(nccl_error(*library_, result, "ncclMemAlloc", nullptr));
    }
  }

  /// Throws NCCL's error.
  void join(const NcclWait& wait) {
    launcher_->run([&] {
      const NcclDevice::Scope scope(*device_);
      if (library_->has_windows()) {
        nccl_->register_window(data_, bytes_, window_, wait);
      } else {
        buffer_ = nccl_->register_buffer(data_, bytes_);
      }
    });
  }

  Block block() { return {data_, bytes_, nullptr, this}; }

  Block allocate(size_t, const Stream&) override {
    throw InternalError("[internal] NCCL's memory is allocated once. Please report this.");
  }
  void free(const Block&) noexcept override {
    wait_for_users();
    delete this;
  }
  void record_stream(const Block&, const Stream& stream) override {
    const MutexLock guard(lock_);
    if (std::ranges::find(users_, stream) == users_.end()) users_.push_back(stream);
  }
  MemoryStats stats() const override {
    const auto bytes = static_cast<int64_t>(bytes_);
    return {.allocated = bytes, .peak_allocated = bytes, .reserved = bytes};
  }
  void reset_peak() override {}

 private:
  void wait_for_users() noexcept {
    const MutexLock guard(lock_);
    for (const Stream& stream : users_) {
      try {
        stream.synchronize();
      } catch (const std::exception&) {
        // The stream was destroyed, and its work is done; or the device has failed, and does
        // nothing more with the memory.
      }
    }
  }

  void release() noexcept {
    if (data_ == nullptr) return;
    try {
      launcher_->run([&] {
        const NcclDevice::Scope scope(*device_);
        if (window_ != nullptr) nccl_->deregister_window(window_);
        if (buffer_ != nullptr) nccl_->deregister_buffer(buffer_);
        (void)library_->functions.ncclMemFree(data_);
      });
    } catch (const std::exception&) {
      // The memory ends with the process.
    }
  }

  const std::shared_ptr<const NcclLibrary> library_;
  const std::shared_ptr<const NcclDevice> device_;
  const std::shared_ptr<NcclLauncher> launcher_;
  const std::shared_ptr<NcclCommunicator> nccl_;
  Mutex lock_;
  std::vector<Stream> users_ LS_GUARDED_BY(lock_);
  void* data_ = nullptr;
  size_t bytes_ = 0;
  void* buffer_ = nullptr;
  nccl::Window* window_ = nullptr;  ///< NCCL sets it some time after the call
};

}  // namespace

Ref<Storage> registered_nccl_memory(const NcclJob& job, std::shared_ptr<NcclCommunicator> nccl,
                                    size_t bytes, const NcclWait& wait,
                                    const std::function<std::string(const std::string&)>& agree) {
  auto memory = std::make_unique<NcclMemory>(job, std::move(nccl));
  std::string why = agree(failure_of([&] { memory->take(bytes); }));
  if (why.empty()) why = agree(failure_of([&] { memory->join(wait); }));
  if (!why.empty()) return {};
  const Block block = memory.release()->block();
  return make_ref<Storage>(block, job.device->device());
}

}  // namespace lockstep::dist
