#pragma once

#include <cstddef>

#include "core/base/owned_fd.h"

namespace lockstep::dist {

/// Memory that processes of one machine share. It has no name: it is gone with the last process
/// that holds it, however that ends. Zero at first.
class SharedMemory {
 public:
  SharedMemory() = default;
  /// All of it is there, or this throws OutOfMemoryError, or BackendError for another reason.
  static SharedMemory create(size_t bytes);
  /// What process `pid` has made and holds as its descriptor `fd`. Throws BackendError.
  static SharedMemory open(int pid, int fd, size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  /// -1 when closed.
  int fd() const noexcept { return fd_.get(); }
  /// From now on no other process can open it.
  void close_fd() noexcept { fd_.reset(); }

 private:
  SharedMemory(OwnedFd fd, size_t bytes);

  OwnedFd fd_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace lockstep::dist
