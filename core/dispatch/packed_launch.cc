#include "core/dispatch/packed_launch.h"

#include <vector>

#include "core/device/kernel_scope.h"
#include "core/device/stream_sanitizer.h"
#include "core/dispatch/operator.h"

namespace lockstep::structured {

void note_packed_launch(const Operator& op, Device device, std::span<const Out* const> results,
                        std::span<const PackedArgument> arguments) {
  if (!stream_sanitizer::enabled() || !is_asynchronous(device.type)) [[likely]]
    return;
  const std::vector<Argument>& schema = op.root().schema().arguments;
  std::vector<stream_sanitizer::KernelAccess> accesses;
  for (const Out* result : results) accesses.push_back({result, true});
  for (size_t i = 0; i < arguments.size(); ++i) {
    for (const TensorArg& tensor : arguments[i].tensors) {
      accesses.push_back({&tensor, schema[i].written});
    }
  }
  stream_sanitizer::on_kernel(kernel_stream(), op, accesses);
}

}  // namespace lockstep::structured
