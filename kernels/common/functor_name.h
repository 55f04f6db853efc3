#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

namespace lockstep::functors {

/// Name of an element-wise functor: "Add", or "WithNumber_Add" for WithNumber<Add, T>. The GPU's
/// kernels of the functor have it in their names, which is how the host finds them. It does not
/// depend on the lane T. No two functors have the same name.
class FunctorName {
 public:
  consteval FunctorName(const char* name) { append(name); }
  /// Name of the functor template `outer` that wraps the functor named `inner`.
  consteval FunctorName(const char* outer, const FunctorName& inner) {
    append(outer);
    append("_");
    append(inner.view());
  }
  constexpr std::string_view view() const { return {text_, size_}; }

 private:
  consteval void append(std::string_view text) {
    for (const char c : text) text_[size_++] = c;  // a name that is too long does not compile
  }

  char text_[48] = {};
  size_t size_ = 0;
};

/// A functor that has a `static constexpr FunctorName kName`.
template <class F>
concept Named = std::same_as<decltype(F::kName), const FunctorName>;

}  // namespace lockstep::functors
