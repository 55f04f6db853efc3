#include "core/dispatch/run_kernel.h"

#include "core/dispatch/dispatcher.h"
#include "core/dispatch/packed_launch.h"

namespace lockstep::structured {

void copy_elements(Key backend, const Tensor& destination, const Tensor& source) {
  static const Operator& op = dispatcher().find("copy");
  using Kernel = StructuredKernel<Tensor(const Tensor&, const Tensor&, bool)>::type;
  const Cell& cell = op.cell(backend);
  const AnyFunction kernel = cell.kernel;
  if (kernel == nullptr) {
    // A fallback of the backend may run it.
    using Copy = TypedOp<const Tensor&(const Tensor&, const Tensor&, bool)>;
    static const Copy in_place(&dispatcher().find("copy_"));
    in_place.redispatch(backend, destination, source, false);
    return;
  }
  const Out out(*destination.impl());
  if (cell.execution == Execution::kQueued) {
    return queue(destination.device(),
                 std::make_unique<QueuedCall<Kernel>>(op, backend, destination.device(), kernel,
                                                      out, out.as_in(), In(*source.impl()), false));
  }
  const KernelScope scope(destination.device());
  reinterpret_cast<Kernel*>(kernel)(out, out.as_in(), In(*source.impl()), false);
}

void count_workspace(const Preparation& preparation) {
  const Storage workspace(preparation.workspace_bytes, preparation.device);
}

void queue(Device device, std::unique_ptr<QueuedKernel> kernel) {
  queue_kernel(current_stream(device), std::move(kernel));
}

void run_packed(const Preparation& preparation, std::span<const Out* const> outs,
                std::span<const PackedArgument> arguments) {
  const Operator& root = preparation.op.root();
  const Key backend = preparation.backend;
  const KernelScope scope(preparation.device);
  note_packed_launch(preparation.op, preparation.device, outs, arguments);
  root.packed_kernel(backend)(
      {preparation.op, backend, preparation.device, outs, arguments, root.kernel_data(backend)});
  if (is_asynchronous(preparation.device.type)) finish_launch(preparation.op);
}

}  // namespace lockstep::structured
