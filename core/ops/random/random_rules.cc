#include "core/ops/random/random_rules.h"

#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/ops/pointwise/pointwise_layout.h"
#include "core/ops/pointwise/promotion.h"
#include "core/tensor/number_range.h"

namespace lockstep::rules {

namespace {

void require_floating(std::string_view op, const Tensor& tensor) {
  LS_CHECK(is_floating(tensor.dtype()), DTypeError,
           "[{}] expected a floating dtype, got {}. Cast it with to(dtype).", op,
           to_string(tensor));
}

void require_probability(std::string_view op, double p) {
  LS_CHECK(p >= 0 && p <= 1, Error, "[{}] p must be a probability in [0, 1], got {}.", op, p);
}

Outputs like_self(const Tensor& self) { return pointwise_result("random", self.dtype(), {&self}); }

/// The smallest and the largest integer that a dtype can hold.
std::pair<int64_t, int64_t> integer_range(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {0, 1};
    case DType::kU8:
      return {0, 255};
    case DType::kI8:
      return {-128, 127};
    case DType::kI16:
      return {-32768, 32767};
    case DType::kI32:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case DType::kF16:
      return {-65504, 65504};
    default:
      return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
}

/// The largest n for which randperm can give each integer below n, as PyTorch counts: n itself for
/// integers, one more than the mantissa's range for floating dtypes.
int64_t most_distinct(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return (1 << 8) + 1;
    case DType::kF16:
      return (1 << 11) + 1;
    case DType::kF32:
      return (1 << 24) + 1;
    default:
      return integer_range(dtype).second;
  }
}

}  // namespace

Outputs uniform(const Tensor& self, double from, double to, Generator*) {
  require_floating("uniform", self);
  LS_CHECK(from <= to, Error, "[uniform] expected from <= to, got {} and {}.", from, to);
  const auto is_number = [&](double value) {
    return std::isfinite(value) && can_hold(self.dtype(), value);
  };
  LS_CHECK(
      is_number(from) && is_number(to) && is_number(to - from), Error,
      "[uniform] expected from, to and to - from to be finite numbers of {}, got {} and {}. Use "
      "a smaller range.",
      to_string(self.dtype()), from, to);
  return like_self(self);
}

Outputs normal(const Tensor& self, double, double std, Generator*) {
  require_floating("normal", self);
  LS_CHECK(std >= 0, Error, "[normal] std must not be negative, got {}.", std);
  return like_self(self);
}

Outputs random_from(const Tensor& self, int64_t from, std::optional<int64_t> to, Generator*) {
  LS_CHECK(!to || from < *to, Error, "[random_] expected from < to, got {} and {}.", from, *to);
  const int64_t last = to ? *to - 1 : std::numeric_limits<int64_t>::max();
  const auto [least, most] = integer_range(self.dtype());
  LS_CHECK(from >= least && (last <= most || !to), DTypeError,
           "[random_] {} holds integers from {} to {} only, got from {} and to {}.",
           to_string(self.dtype()), least, most, from, last);
  return like_self(self);
}

Outputs bernoulli(const Tensor& self, double p, Generator*) {
  require_probability("bernoulli", p);
  return like_self(self);
}

Outputs randperm(int64_t n, Generator*, std::optional<DType> dtype, std::optional<Layout>,
                 std::optional<Device>, std::optional<bool>) {
  LS_CHECK(n >= 0 && n < (int64_t{1} << 32), Error, "[randperm] n must be in [0, 2^32), got {}.",
           n);
  const DType result = dtype.value_or(DType::kI64);
  LS_CHECK(
      n <= most_distinct(result), DTypeError,
      "[randperm] {} cannot hold each integer below n: expected at most {}, got {}. Use a wider "
      "dtype.",
      to_string(result), most_distinct(result), n);
  return one({n}, result);
}

Outputs native_dropout(const Tensor& input, double p, std::optional<bool>) {
  require_probability("native_dropout", p);
  require_floating("native_dropout", input);
  Outputs outputs = like_self(input);
  OutputSpec mask = outputs.specs[0];
  mask.dtype = DType::kBool;
  outputs.specs.push_back(mask);
  return outputs;
}

Outputs native_dropout_backward(const Tensor& grad, const Tensor& mask, double) {
  LS_CHECK(mask.dtype() == DType::kBool, DTypeError,
           "[native_dropout_backward] mask must be a bool tensor, got {}.", to_string(mask));
  return pointwise_result("native_dropout_backward", to_floating(grad.dtype()), {&grad, &mask});
}

}  // namespace lockstep::rules
