#pragma once

namespace lockstep {

/// Owns a file descriptor that no child made by fork() keeps open (OwnedFd's are): a connection
/// must end when the process that made it ends, whatever children that left behind. Not
/// thread-safe.
class Descriptor {
 public:
  Descriptor() = default;
  /// Takes `fd` over; negative: none.
  explicit Descriptor(int fd);
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : entry_(other.entry_) { other.entry_ = nullptr; }
  Descriptor& operator=(Descriptor&& other) noexcept;

  /// -1 where there is none, as in a forked child.
  int get() const noexcept;
  explicit operator bool() const noexcept { return get() >= 0; }
  void reset() noexcept;

 private:
  struct Entry;
  friend struct OpenDescriptors;
  Entry* entry_ = nullptr;
};

}  // namespace lockstep
