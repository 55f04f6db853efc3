#pragma once

#include <memory>

#include "core/tensor/tensor.h"
#include "dist/nccl/nccl_communicator.h"

namespace lockstep::dist {

class NcclLauncher;

/// Memory registered with a group's NCCL communicator, which then accesses it without internal
/// copies if the machine supports that. Keeps the tensor alive. Once the group is destroyed the
/// registration has no effect. Not thread-safe.
class NcclBuffer {
 public:
  NcclBuffer() = default;
  /// Registers the tensor's memory. `launcher` makes the communicator's calls, between which the
  /// memory is registered and deregistered. Throws NCCL's error.
  NcclBuffer(std::shared_ptr<NcclLauncher> launcher, std::shared_ptr<NcclCommunicator> communicator,
             const Tensor& tensor);
  ~NcclBuffer() { reset(); }
  NcclBuffer(NcclBuffer&& other) noexcept;
  NcclBuffer& operator=(NcclBuffer&& other) noexcept;

  const Tensor& tensor() const noexcept { return tensor_; }

 private:
  void reset() noexcept;

  std::shared_ptr<NcclLauncher> launcher_;
  std::shared_ptr<NcclCommunicator> communicator_;
  Tensor tensor_;
  void* handle_ = nullptr;
};

}  // namespace lockstep::dist
