#pragma once

#include <cstdint>
#include <memory>

#include "autograd/saved_tensor_hooks.h"
#include "core/tensor/tensor.h"

namespace lockstep {

struct HostActivationsOptions {
  /// Storages below this many bytes stay on the device.
  int64_t least_bytes = 64 << 10;
  /// Bytes that stay on the device until later ones are saved, and bytes that are on their way back
  /// before backward asks for them. A single larger storage is let through.
  int64_t bytes_on_the_way = 64 << 20;
};

/// Keeps what a forward saves for its backward in the host's pinned memory: each storage is copied
/// there on a stream of its own while forward goes on, and back while backward comes nearer to it.
/// The device holds the bytes on their way instead of all activations. Nothing waits on the host.
///
/// Gradients have the same bits as without: storages are moved as they are, with the strides of
/// their tensors. Storages that several operators save soon after each other are moved once. What
/// stays on the device: the storages of `parameters`, casts of parameters that autocast keeps,
/// memory that is borrowed or part of an arena (a sharded model's parameters), tensors of other
/// devices. On meta nothing is copied, but memory is counted as on a device.
///
///     HostActivations host(device, model.parameters());
///     SavedTensorHooksGuard guard(host.hooks());   // around forward
///
/// Thread-safe. Changing a tensor in place after it was saved is noticed, by the AutogradError of
/// its backward, only while it has not left the device.
class HostActivations {
 public:
  /// Throws DeviceError unless the device has streams or is meta.
  HostActivations(Device device, TensorList parameters, const HostActivationsOptions& options = {});
  ~HostActivations();
  HostActivations(HostActivations&&) noexcept = default;
  HostActivations& operator=(HostActivations&&) noexcept = default;

  /// For SavedTensorHooksGuard. What they packed may outlive this object.
  SavedTensorHooks hooks() const;
  /// Bytes that were copied to the host since this was made.
  int64_t copied_bytes() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace lockstep
