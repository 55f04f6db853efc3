#pragma once

namespace lockstep {

/// Owns a file descriptor that is closed in every child made by fork() (an OwnedFd stays open
/// there). Connections need this: they must end with the process that made them, even if its
/// children live on. Not thread-safe.
class Descriptor {
 public:
  Descriptor() = default;
  /// Takes ownership of `fd`; a negative one leaves the object empty.
  explicit Descriptor(int fd);
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : entry_(other.entry_) { other.entry_ = nullptr; }
  Descriptor& operator=(Descriptor&& other) noexcept;

  /// The descriptor; -1 if empty, or in a forked child.
  int get() const noexcept;
  explicit operator bool() const noexcept { return get() >= 0; }
  void reset() noexcept;

 private:
  struct Entry;
  friend struct OpenDescriptors;
  Entry* entry_ = nullptr;
};

}  // namespace lockstep
