#include "dist/nccl/nccl_buffer.h"

#include <utility>

namespace lockstep::dist {

NcclBuffer::NcclBuffer(std::shared_ptr<NcclCommunicator> communicator, const Tensor& tensor)
    : communicator_(std::move(communicator)), tensor_(tensor) {
  handle_ = communicator_->register_buffer(tensor_.data(), tensor_.nbytes());
}

NcclBuffer::NcclBuffer(NcclBuffer&& other) noexcept
    : communicator_(std::move(other.communicator_)),
      tensor_(std::exchange(other.tensor_, Tensor())),
      handle_(std::exchange(other.handle_, nullptr)) {}

NcclBuffer& NcclBuffer::operator=(NcclBuffer&& other) noexcept {
  if (this != &other) {
    reset();
    communicator_ = std::move(other.communicator_);
    tensor_ = std::exchange(other.tensor_, Tensor());
    handle_ = std::exchange(other.handle_, nullptr);
  }
  return *this;
}

void NcclBuffer::reset() noexcept {
  if (communicator_) communicator_->deregister_buffer(std::exchange(handle_, nullptr));
  communicator_.reset();
  tensor_ = Tensor();
}

}  // namespace lockstep::dist
