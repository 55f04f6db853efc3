#pragma once

#include <memory>
#include <optional>

#include "core/base/function_ref.h"
#include "core/tensor/generator.h"
#include "core/tensor/kernel_arguments.h"
#include "core/tensor/stream.h"

namespace lockstep {

class OperatorName;

/// A call of a cpu kernel, queued on a stream: function, addresses, geometry and scalar arguments,
/// all copied when it was queued. Like a kernel launch on a GPU it keeps no memory alive; the
/// allocator's stream order makes that safe.
class QueuedKernel {
 public:
  explicit QueuedKernel(const OperatorName& op) : op_(&op) {}
  virtual ~QueuedKernel() = default;
  QueuedKernel(const QueuedKernel&) = delete;
  QueuedKernel& operator=(const QueuedKernel&) = delete;

  /// Runs the kernel on a worker thread. Throws what the kernel throws.
  virtual void run() = 0;
  /// Calls `visit(tensor, written)` for each tensor that the kernel reads or writes.
  virtual void each_access(FunctionRef<void(const TensorArg&, bool)> visit) const = 0;

  /// The operator that the user called: `add_`, not `add`.
  const OperatorName& op() const { return *op_; }
  /// The first key of the worker's default generator; reserved by the thread that queued an
  /// operator that draws random numbers.
  const std::optional<RandomKey>& random() const { return random_; }
  void set_random(const RandomKey& key) { random_ = key; }

 private:
  const OperatorName* op_;
  std::optional<RandomKey> random_;
};

/// Queues a kernel on a stream of a device that runs the cpu's kernels. Throws DeviceError if the
/// device does not, and for a race that the stream sanitizer finds. With LOCKSTEP_LAUNCH_BLOCKING=1
/// also waits for the kernel and throws its error.
void queue_kernel(const Stream& stream, std::unique_ptr<QueuedKernel> kernel);

}  // namespace lockstep
