#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "dist/ddp/reducer.h"

namespace lockstep::dist {

inline Tensor random_matrix(uint32_t seed, int64_t rows, int64_t columns) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-0.5F, 0.5F);
  const Tensor result = empty({rows, columns}, DType::kF32);
  std::generate_n(result.data<float>(), result.numel(), [&] { return uniform(random); });
  return result;
}

/// A module of two layers and a buffer.
struct SmallModel {
  Tensor first, second, extra, count = zeros({1});
  bool has_extra = false;  ///< adds a third layer, used for odd samples

  explicit SmallModel(uint32_t seed = 1)
      : first(random_matrix(seed, 6, 8).set_requires_grad()),
        second(random_matrix(seed + 1, 8, 3).set_requires_grad()),
        extra(random_matrix(seed + 2, 3, 3).set_requires_grad()) {}

  std::vector<NamedTensor> named_parameters() const {
    std::vector<NamedTensor> list = {{"first", first}, {"second", second}};
    if (has_extra) list.push_back({"extra", extra});
    return list;
  }
  std::vector<NamedTensor> named_buffers() const { return {{"count", count}}; }

  Tensor loss(uint32_t sample) const {
    const Tensor result = mm(tanh(mm(random_matrix(sample + 50, 2, 6), first)), second);
    return sum(has_extra && sample % 2 == 1 ? mm(result, extra) : result);
  }
  void descend() const {
    const NoGradGuard no_grad;
    for (const NamedTensor& each : named_parameters()) {
      if (each.tensor.grad().defined()) each.tensor.detach().sub_(each.tensor.grad() * 0.1);
    }
  }
};

inline std::vector<float> numbers(const Tensor& tensor) {
  const Tensor here = tensor.detach().contiguous();
  return {here.data<float>(), here.data<float>() + here.numel()};
}

/// The messages of all errors, one per line.
inline std::string texts_of(const std::vector<std::exception_ptr>& errors) {
  std::string text;
  for (const std::exception_ptr& error : errors) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const std::exception& thrown) {
      text += std::string(thrown.what()) + "\n";
    }
  }
  return text;
}

}  // namespace lockstep::dist
