#include "dist/nccl/nccl_buffer.h"

#include <utility>

#include "dist/nccl/nccl_launcher.h"

namespace lockstep::dist {

NcclBuffer::NcclBuffer(std::shared_ptr<NcclLauncher> launcher,
                       std::shared_ptr<NcclCommunicator> communicator, const Tensor& tensor)
    : launcher_(std::move(launcher)), communicator_(std::move(communicator)), tensor_(tensor) {
  launcher_->run(
      [this] { handle_ = communicator_->register_buffer(tensor_.data(), tensor_.nbytes()); });
}

NcclBuffer::NcclBuffer(NcclBuffer&& other) noexcept
    : launcher_(std::move(other.launcher_)),
      communicator_(std::move(other.communicator_)),
      tensor_(std::exchange(other.tensor_, Tensor())),
      handle_(std::exchange(other.handle_, nullptr)) {}

NcclBuffer& NcclBuffer::operator=(NcclBuffer&& other) noexcept {
  if (this != &other) {
    reset();
    launcher_ = std::move(other.launcher_);
    communicator_ = std::move(other.communicator_);
    tensor_ = std::exchange(other.tensor_, Tensor());
    handle_ = std::exchange(other.handle_, nullptr);
  }
  return *this;
}

void NcclBuffer::reset() noexcept {
  if (handle_ != nullptr) {
    launcher_->run([this] { communicator_->deregister_buffer(handle_); });
    handle_ = nullptr;
  }
  communicator_.reset();
  launcher_.reset();
  tensor_ = Tensor();
}

}  // namespace lockstep::dist
