#include "tests/conformance/agreement.h"

#include <cmath>

#include "core/base/check.h"
#include "tests/conformance/elements.h"

namespace lockstep::conformance {

namespace {

constexpr double kAbsolute = 1e-5;
constexpr double kRelative = 1e-4;

bool agree(double got, double want) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= kAbsolute + kRelative * std::abs(want);
}
bool agree(int64_t got, int64_t want) { return got == want; }

/// Row-major index of the i-th element, as text.
std::string place(IntList sizes, size_t i) {
  Dims index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    index[d] = static_cast<int64_t>(i) % sizes[d];
    i /= static_cast<size_t>(sizes[d]);
  }
  return to_string(index);
}

template <class T>
std::optional<std::string> element_difference(const Tensor& got, const Tensor& want) {
  const std::vector<T> have = elements_as<T>(got);
  const std::vector<T> expected = elements_as<T>(want);
  size_t wrong = 0;
  size_t first = 0;
  for (size_t i = 0; i < have.size(); ++i) {
    if (agree(have[i], expected[i])) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return std::nullopt;
  return fmt::format("{} of {} elements differ, the first at {}: expected {}, got {}", wrong,
                     have.size(), place(got.sizes(), first), expected[first], have[first]);
}

}  // namespace

std::optional<std::string> difference(const Tensor& got, const Tensor& want) {
  if (!same(got.sizes(), want.sizes())) {
    return fmt::format("shape: expected {}, got {}", want.shape(), got.shape());
  }
  const bool real = is_floating(got.dtype()) || is_floating(want.dtype());
  return real ? element_difference<double>(got, want) : element_difference<int64_t>(got, want);
}

std::optional<std::string> difference(const Value& got, const Value& want) {
  const bool real = want.tag() == Value::Tag::kDouble;
  const Scalar have = got.to_scalar();
  const bool equal = real ? agree(have.to_double(), want.to_double())
                          : !have.is_floating() && have.to_int() == want.to_int();
  if (equal) return std::nullopt;
  return fmt::format("expected {}, got {}", want.to_string(), got.to_string());
}

}  // namespace lockstep::conformance
