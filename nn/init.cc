#include "nn/init.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/view/view.h"

namespace lockstep::nn::init {

namespace {

/// Standard normal distribution function.
double normal_share(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// Its inverse, for a share in (0, 1), by bisection: the function has no closed form, and all
/// doubles between -40 and 40 are reached in 64 steps.
double normal_quantile(double share) {
  double low = -40;
  double high = 40;
  for (int step = 0; step < 64; ++step) {
    const double middle = (low + high) / 2;
    (normal_share(middle) < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

double kaiming_deviation(const Tensor& tensor, double a, FanMode mode,
                         std::string_view nonlinearity) {
  const Fans fans = fans_of(tensor);
  const double fan = static_cast<double>(mode == FanMode::kFanIn ? fans.in : fans.out);
  return calculate_gain(nonlinearity, a) / std::sqrt(fan);
}

double xavier_deviation(const Tensor& tensor, double gain) {
  const Fans fans = fans_of(tensor);
  return gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out));
}

}  // namespace

const Tensor& uniform_(const Tensor& tensor, double from, double to, Generator* generator) {
  const NoGradGuard no_grad;
  return lockstep::uniform_(tensor, from, to, generator);
}

const Tensor& normal_(const Tensor& tensor, double mean, double std, Generator* generator) {
  const NoGradGuard no_grad;
  return lockstep::normal_(tensor, mean, std, generator);
}

const Tensor& trunc_normal_(const Tensor& tensor, double mean, double std, double least,
                            double most, Generator* generator) {
  LS_CHECK(least < most && std > 0, Error,
           "[trunc_normal_] expected a range and a deviation above 0, got [{}, {}] and {}.", least,
           most, std);
  const NoGradGuard no_grad;
  const double first = normal_share((least - mean) / std);
  const double last = normal_share((most - mean) / std);
  const Tensor numbers = rand(tensor.sizes(), {DType::kF64, kCPU}, generator);
  double* const value = numbers.data<double>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    const double drawn = mean + std * normal_quantile(first + value[i] * (last - first));
    value[i] = std::clamp(drawn, least, most);
  }
  return tensor.copy_(numbers);
}

const Tensor& constant_(const Tensor& tensor, double value) {
  const NoGradGuard no_grad;
  return tensor.fill_(value);
}

const Tensor& ones_(const Tensor& tensor) { return constant_(tensor, 1); }
const Tensor& zeros_(const Tensor& tensor) { return constant_(tensor, 0); }

const Tensor& eye_(const Tensor& tensor) {
  LS_CHECK(tensor.dim() == 2, ShapeError, "[eye_] expected a matrix, got {}.", tensor.shape());
  const NoGradGuard no_grad;
  tensor.zero_();
  diagonal(tensor).fill_(1);
  return tensor;
}

const Tensor& dirac_(const Tensor& tensor, int64_t groups) {
  LS_CHECK(tensor.dim() >= 3 && groups > 0 && tensor.size(0) % groups == 0, ShapeError,
           "[dirac_] expected the weight of a convolution whose features {} groups divide, got {}.",
           groups, tensor.shape());
  const NoGradGuard no_grad;
  tensor.zero_();
  const int64_t features = tensor.size(0) / groups;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t i = 0; i < std::min(features, tensor.size(1)); ++i) {
      Tensor place = tensor.select(0, group * features + i).select(0, i);
      while (place.dim() > 0) place = place.select(0, place.size(0) / 2);
      place.fill_(1);
    }
  }
  return tensor;
}

Fans fans_of(const Tensor& tensor) {
  LS_CHECK(tensor.dim() >= 2, ShapeError,
           "[init] expected a weight of two dimensions or more, got {}. Use uniform_ or normal_.",
           tensor.shape());
  int64_t kernel = 1;
  for (int64_t i = 2; i < tensor.dim(); ++i) kernel *= tensor.size(i);
  return {tensor.size(1) * kernel, tensor.size(0) * kernel};
}

double calculate_gain(std::string_view nonlinearity, double param) {
  const bool linear = nonlinearity == "linear" || nonlinearity.starts_with("conv");
  if (linear || nonlinearity == "sigmoid") return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1 + param * param));
  LS_CHECK(nonlinearity == "selu", Error,
           "[calculate_gain] unknown nonlinearity \"{}\": expected linear, conv1d, sigmoid, tanh, "
           "relu, leaky_relu or selu.",
           nonlinearity);
  return 0.75;
}

const Tensor& xavier_uniform_(const Tensor& tensor, double gain, Generator* generator) {
  const double bound = std::sqrt(3.0) * xavier_deviation(tensor, gain);
  return init::uniform_(tensor, -bound, bound, generator);
}

const Tensor& xavier_normal_(const Tensor& tensor, double gain, Generator* generator) {
  return init::normal_(tensor, 0, xavier_deviation(tensor, gain), generator);
}

const Tensor& kaiming_uniform_(const Tensor& tensor, double a, FanMode mode,
                               std::string_view nonlinearity, Generator* generator) {
  const double bound = std::sqrt(3.0) * kaiming_deviation(tensor, a, mode, nonlinearity);
  return init::uniform_(tensor, -bound, bound, generator);
}

const Tensor& kaiming_normal_(const Tensor& tensor, double a, FanMode mode,
                              std::string_view nonlinearity, Generator* generator) {
  return init::normal_(tensor, 0, kaiming_deviation(tensor, a, mode, nonlinearity), generator);
}

const Tensor& orthogonal_(const Tensor& tensor, double gain, Generator* generator) {
  LS_CHECK(tensor.dim() >= 2, ShapeError, "[orthogonal_] expected two dimensions or more, got {}.",
           tensor.shape());
  const NoGradGuard no_grad;
  if (tensor.numel() == 0) return tensor;
  const int64_t rows = tensor.size(0);
  const int64_t columns = tensor.numel() / rows;
  // Gram-Schmidt over the fewer vectors, twice, which leaves them orthogonal to rounding.
  const int64_t count = std::min(rows, columns);
  const Tensor vectors =
      randn({count, std::max(rows, columns)}, {DType::kF32, kCPU}, generator).to(DType::kF64);
  for (int64_t i = 0; i < count; ++i) {
    const Tensor vector = vectors.select(0, i);
    const Tensor before = vectors.slice(0, 0, i);
    for (int pass = 0; pass < 2 && i > 0; ++pass) {
      vector.sub_(before.t().matmul(before.matmul(vector)));
    }
    vector.div_(dot(vector, vector).sqrt());
  }
  vectors.mul_(full({}, gain, DType::kF64));
  return tensor.copy_((rows <= columns ? vectors : vectors.t()).reshape(tensor.sizes()));
}

const Tensor& sparse_(const Tensor& tensor, double sparsity, double std, Generator* generator) {
  LS_CHECK(tensor.dim() == 2, ShapeError, "[sparse_] expected a matrix, got {}.", tensor.shape());
  LS_CHECK(sparsity >= 0 && sparsity <= 1, Error, "[sparse_] expected a share in [0, 1], got {}.",
           sparsity);
  init::normal_(tensor, 0, std, generator);
  const NoGradGuard no_grad;
  const int64_t rows = tensor.size(0);
  const auto zeroed = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  for (int64_t column = 0; column < tensor.size(1); ++column) {
    const Tensor order = randperm(rows, {DType::kI64, kCPU}, generator);
    const int64_t* const row = order.data<int64_t>();
    for (int64_t i = 0; i < zeroed; ++i) tensor.select(0, row[i]).select(0, column).zero_();
  }
  return tensor;
}

}  // namespace lockstep::nn::init
