#pragma once

#include <memory>

#include "core/tensor/tensor.h"
#include "dist/nccl/nccl_communicator.h"

namespace lockstep::dist {

/// Memory that a group's NCCL communicator knows: it reads and writes it without copies of its own
/// where the machine can. Keeps the tensor. After the group it is nothing but the tensor. Not
/// thread-safe.
class NcclBuffer {
 public:
  NcclBuffer() = default;
  /// Throws what NCCL refuses it with.
  NcclBuffer(std::shared_ptr<NcclCommunicator> communicator, const Tensor& tensor);
  ~NcclBuffer() { reset(); }
  NcclBuffer(NcclBuffer&& other) noexcept;
  NcclBuffer& operator=(NcclBuffer&& other) noexcept;

  const Tensor& tensor() const noexcept { return tensor_; }

 private:
  void reset() noexcept;

  std::shared_ptr<NcclCommunicator> communicator_;
  Tensor tensor_;
  void* handle_ = nullptr;
};

}  // namespace lockstep::dist
