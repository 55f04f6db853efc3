#pragma once

#include <array>
#include <cstddef>
#include <cstring>

namespace lockstep::cpu {

inline constexpr size_t kMostFunctorBytes = 32;  ///< that are kept
inline constexpr size_t kMostOperands = 3;       ///< of an element-wise operator

/// The functor of a step, and those of its operands that are numbers of the call, in their dtypes.
struct StepConstants {
  alignas(16) std::array<std::byte, kMostFunctorBytes> functor{};
  std::array<std::array<std::byte, 8>, kMostOperands> numbers{};

  template <class F>
  F get() const {
    F copy{};
    std::memcpy(static_cast<void*>(&copy), functor.data(), sizeof(F));
    return copy;
  }
  template <class T>
  T number(size_t operand) const {
    T copy{};
    std::memcpy(static_cast<void*>(&copy), numbers[operand].data(), sizeof(T));
    return copy;
  }
};

}  // namespace lockstep::cpu
