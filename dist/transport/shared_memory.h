#pragma once

#include <cstddef>

#include "core/base/owned_fd.h"

namespace lockstep::dist {

/// Memory shared by processes of one machine. It is anonymous: the system frees it with the last
/// process that holds it, however that ends. Zero-initialised.
class SharedMemory {
 public:
  SharedMemory() = default;
  /// Allocates memory, including all pages. Throws OutOfMemoryError, or BackendError for another
  /// reason.
  static SharedMemory create(size_t bytes) { return create(bytes, bytes); }
  /// Allocates the pages of the first `now` bytes of `bytes`. The others must be asked for with
  /// `allocate` before they are accessed, in any process that has the memory open.
  static SharedMemory create(size_t bytes, size_t now);
  /// Maps the memory that process `pid` made and holds as its descriptor `fd`. Throws BackendError.
  static SharedMemory open(int pid, int fd, size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  /// Allocates the pages that hold `bytes` bytes from `offset` on, unless they are there already.
  /// Throws OutOfMemoryError.
  void allocate(size_t offset, size_t bytes) const;

  std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  /// Descriptor of the memory, -1 when closed.
  int fd() const noexcept { return fd_.get(); }
  /// Closes the descriptor; no other process can open the memory afterwards.
  void close_fd() noexcept { fd_.reset(); }

 private:
  SharedMemory(OwnedFd fd, size_t bytes);

  OwnedFd fd_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace lockstep::dist
