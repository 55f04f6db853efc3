#pragma once

#include <memory>
#include <optional>

#include "core/base/function_ref.h"
#include "core/tensor/generator.h"
#include "core/tensor/kernel_arguments.h"
#include "core/tensor/stream.h"

namespace lockstep {

class OperatorName;

/// A call of a cpu kernel on its way through a stream: function, addresses, geometry and numbers,
/// all copied when it was queued. Like a kernel launch on a GPU it keeps no memory alive: the
/// allocator's stream order does.
class QueuedKernel {
 public:
  explicit QueuedKernel(const OperatorName& op) : op_(&op) {}
  virtual ~QueuedKernel() = default;
  QueuedKernel(const QueuedKernel&) = delete;
  QueuedKernel& operator=(const QueuedKernel&) = delete;

  /// Runs on a worker. May throw what the kernel throws.
  virtual void run() = 0;
  /// Calls `visit(tensor, written)` for each tensor that the kernel reads or writes.
  virtual void each_access(FunctionRef<void(const TensorArg&, bool)> visit) const = 0;

  /// As the user called it: `add_`, not `add`.
  const OperatorName& op() const { return *op_; }
  /// What the worker's default generator will draw first; reserved by whoever queued an operator
  /// that draws random numbers.
  const std::optional<RandomKey>& random() const { return random_; }
  void set_random(const RandomKey& key) { random_ = key; }

 private:
  const OperatorName* op_;
  std::optional<RandomKey> random_;
};

/// Queues a kernel on a stream of a device that runs the cpu's kernels. Throws DeviceError where
/// the device does not, and what the stream sanitizer finds. With LOCKSTEP_LAUNCH_BLOCKING=1 it
/// waits for the kernel, too, and throws what that threw.
void queue_kernel(const Stream& stream, std::unique_ptr<QueuedKernel> kernel);

}  // namespace lockstep
