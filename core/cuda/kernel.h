#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::cuda {

/// A kernel of the modules embedded by cmake/Cuda.cmake: a small value. Construct it once, at
/// namespace scope. A device looks the function up at its first launch, which throws if there is no
/// such kernel; later launches find it by number, without a lock or a name.
class Kernel {
 public:
  static constexpr uint32_t kMost = 8192;  ///< size of each device's table, by number

  /// Refers to no kernel; launching it throws DeviceError.
  Kernel() = default;
  /// Refers to the kernel of this name in the first of `images` that has it. Throws InternalError
  /// if there are more than kMost. Thread-safe.
  Kernel(std::span<const void* const> images, std::string name);
  Kernel(const void* image, std::string name) : Kernel(std::span(&image, 1), std::move(name)) {}

  /// A number below kMost; 0 means none.
  uint32_t number() const noexcept { return number_; }
  const std::string& name() const;
  std::span<const void* const> images() const;

  /// All kernels constructed so far.
  static std::vector<Kernel> all();

 private:
  explicit Kernel(uint32_t number) : number_(number) {}

  uint32_t number_ = 0;
};

}  // namespace lockstep::cuda
