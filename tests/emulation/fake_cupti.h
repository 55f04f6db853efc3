#pragma once

#include <cstddef>
#include <cstdint>

// Does not include cupti.h, whose vector types conflict with tests/emulation/vector_types.h.

namespace lockstep::cuda {

/// Makes `cupti()` a CUPTI that records what emulated GPUs run (NotedCall, NotedWork) and returns
/// it as the real one does: in buffers that it asks for, when it is told to flush.
void install_fake_cupti();

}  // namespace lockstep::cuda

namespace lockstep::emulation {

/// Addresses do not tell an emulated copy's direction: all are copies on the device.
enum class WorkKind { kKernel, kCopyOnDevice };

/// A call of the driver that queues work, while alive.
class NotedCall {
 public:
  explicit NotedCall(const char* function);
  ~NotedCall();
  NotedCall(const NotedCall&) = delete;
  NotedCall& operator=(const NotedCall&) = delete;

  uint32_t number() const { return number_; }

 private:
  const char* function_;
  uint32_t number_ = 0;
  uint64_t begin_ = 0;
};

/// What a call queued.
struct QueuedPiece {
  WorkKind kind = WorkKind::kKernel;
  const char* name = nullptr;  ///< of a kernel
  size_t bytes = 0;
  int device = 0;
  uint32_t call = 0;
};

/// Such work, while it runs.
class NotedWork {
 public:
  explicit NotedWork(const QueuedPiece& piece);
  ~NotedWork();
  NotedWork(const NotedWork&) = delete;
  NotedWork& operator=(const NotedWork&) = delete;

 private:
  QueuedPiece piece_;
  uint64_t begin_ = 0;
};

}  // namespace lockstep::emulation
