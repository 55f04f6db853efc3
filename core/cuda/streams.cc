#include "core/cuda/streams.h"

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/cuda/error.h"

namespace lockstep::cuda {

Streams::~Streams() {
  while (!numbered_.empty()) destroy(numbered_.begin()->first);
  for (const std::atomic<CUstream>& stream : pooled_) {
    if (stream != nullptr) end({stream, false});
  }
}

CUstream Streams::get(int32_t id) {
  if (id < 0 || id >= kPooled) return numbered(id).native;
  std::atomic<CUstream>& pooled = pooled_[static_cast<size_t>(id)];
  CUstream stream = pooled.load(std::memory_order_acquire);
  if (stream != nullptr) [[likely]]
    return stream;
  const MutexLock lock(mutex_);
  stream = pooled.load(std::memory_order_relaxed);
  if (stream == nullptr) {
    stream = make(id > kPoolStreams ? -1 : 0);
    pooled.store(stream, std::memory_order_release);
  }
  return stream;
}

bool Streams::exists(int32_t id) {
  if (id < 0 || id >= kPooled) return numbered(id).native != nullptr;
  return pooled_[static_cast<size_t>(id)].load(std::memory_order_acquire) != nullptr;
}

int Streams::priority(int32_t id) {
  const CUstream stream = get(id);
  const ContextGuard guard(context_);
  int priority = 0;
  LS_CUDA(context_.driver(), cuStreamGetPriority, stream, &priority);
  return priority;
}

int32_t Streams::create(int priority) {
  const CUstream stream = make(priority);
  const MutexLock lock(mutex_);
  numbered_[next_] = {stream, false};
  return next_++;
}

int32_t Streams::adopt(CUstream native) {
  if (native == nullptr) native = CU_STREAM_LEGACY;
  {
    const ContextGuard guard(context_);
    CUdevice device = 0;
    LS_CUDA(context_.driver(), cuStreamGetDevice, native, &device);
    LS_CHECK(device == context_.device(), DeviceError,
             "[external_stream] expected a stream of cuda:{}, got one of another device.",
             context_.index());
  }
  const MutexLock lock(mutex_);
  for (const auto& [id, known] : numbered_) {
    if (known.native == native) return id;
  }
  numbered_[next_] = {native, true};
  return next_++;
}

void Streams::destroy(int32_t id) noexcept {
  Numbered gone;
  {
    const MutexLock lock(mutex_);
    const auto found = numbered_.find(id);
    if (found == numbered_.end()) return;
    gone = found->second;
    numbered_.erase(found);
  }
  end(gone);
}

void Streams::each_own(const std::function<void(int32_t id, CUstream stream)>& visit) {
  for (int32_t id = 0; id < kPooled; ++id) {
    const CUstream stream = pooled_[static_cast<size_t>(id)].load(std::memory_order_acquire);
    if (stream != nullptr) visit(id, stream);
  }
  const MutexLock lock(mutex_);
  for (const auto& [id, stream] : numbered_) {
    if (!stream.adopted) visit(id, stream.native);
  }
}

void Streams::end(const Numbered& stream) noexcept {
  try {
    const Driver& driver = context_.driver();
    const ContextGuard guard(context_);
    // The next call that may throw reports the error of failed work.
    (void)driver.cuStreamSynchronize(stream.native);
    if (!stream.adopted) (void)driver.cuStreamDestroy(stream.native);
  } catch (const std::exception&) {
    // Without a context there is no stream to destroy.
  }
}

CUstream Streams::make(int priority) {
  const ContextGuard guard(context_);
  CUstream stream = nullptr;
  // The driver clamps to the priorities that the device has.
  LS_CUDA(context_.driver(), cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, priority);
  return stream;
}

Streams::Numbered Streams::numbered(int32_t id) {
  const MutexLock lock(mutex_);
  const auto found = numbered_.find(id);
  LS_CHECK(found != numbered_.end(), DeviceError,
           "[stream] there is no cuda:{} stream {}: it was {}.", context_.index(), id,
           id >= kPooled && id < next_ ? "destroyed" : "never made");
  return found->second;
}

}  // namespace lockstep::cuda
