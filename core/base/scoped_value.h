#pragma once

#include <type_traits>
#include <utility>

namespace lockstep {

/// Gives a variable another value until the end of the scope. `variable` must outlive the guard; a
/// guard of a thread-local variable must be destroyed on the thread that made it. Guards nest.
template <class T>
class ScopedValue {
 public:
  ScopedValue(T& variable, std::type_identity_t<T> value) noexcept
      : variable_(variable), saved_(std::exchange(variable, std::move(value))) {}
  ~ScopedValue() { variable_ = std::move(saved_); }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

  /// The value that the variable had before.
  const T& outer() const noexcept { return saved_; }

 private:
  T& variable_;
  T saved_;
};

}  // namespace lockstep
