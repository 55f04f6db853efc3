#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::cuda {

/// A kernel of the modules that cmake/Cuda.cmake embedded: a small value. It is named once, where
/// the program starts; a device finds the function at its first launch, and from then on by number,
/// without a lock or a name. Whether there is such a kernel shows only then.
class Kernel {
 public:
  static constexpr uint32_t kMost = 8192;

  /// None; a launch of it throws DeviceError.
  Kernel() = default;
  /// In the first of `images` that has a kernel of this name. Throws InternalError when there are
  /// more than kMost. Thread-safe.
  Kernel(std::span<const void* const> images, std::string name);
  Kernel(const void* image, std::string name) : Kernel(std::span(&image, 1), std::move(name)) {}

  /// Below kMost; 0 is none.
  uint32_t number() const noexcept { return number_; }
  const std::string& name() const;
  std::span<const void* const> images() const;

  /// All that were named so far.
  static std::vector<Kernel> all();

 private:
  explicit Kernel(uint32_t number) : number_(number) {}

  uint32_t number_ = 0;
};

}  // namespace lockstep::cuda
