#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/stream.h"
#include "dist/ddp/reducer.h"

namespace lockstep::dist {

/// Makes a new stream current, since ranks that are threads and share a device need separate
/// streams.
class OwnCurrentStream {
 public:
  explicit OwnCurrentStream(Device device) {
    if (device == kCPU) return;
    stream_.emplace(device);
    guard_.emplace(stream_->get());
  }

 private:
  std::optional<OwnedStream> stream_;
  std::optional<StreamGuard> guard_;
};

/// Parameters "p0", "p1", ... with the given shapes.
inline std::vector<NamedTensor> parameters_of(const std::vector<std::vector<int64_t>>& shapes,
                                              TensorOptions options = {DType::kF32, kCPU}) {
  std::vector<NamedTensor> list;
  for (const std::vector<int64_t>& shape : shapes) {
    list.push_back({"p" + std::to_string(list.size()), ones(shape, options).set_requires_grad()});
  }
  return list;
}

inline Tensor random_values(uint32_t seed, const std::vector<int64_t>& shape) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const Tensor result = empty(shape, {DType::kF32, kCPU});
  std::generate_n(result.data<float>(), result.numel(), [&] { return normal(random); });
  return result;
}

/// A loss whose gradients with respect to the parameters are `gradients`. Backward makes the last
/// one first.
inline Tensor loss_with(const std::vector<NamedTensor>& parameters,
                        const std::vector<Tensor>& gradients) {
  Tensor loss;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Tensor& parameter = parameters[i].tensor;
    const Tensor here = gradients[i].to(parameter.dtype()).to(parameter.device());
    const Tensor term = sum(parameter * here);
    loss = loss.defined() ? loss + term : term;
  }
  return loss;
}

/// Runs a step of one backward in which the parameters get these gradients.
inline void step_with(Reducer& reducer, const std::vector<NamedTensor>& parameters,
                      const std::vector<Tensor>& gradients) {
  reducer.begin_step();
  reducer.begin_leaf();
  reducer.expect_last_backward();
  loss_with(parameters, gradients).backward();
  reducer.finish();
}

inline std::vector<double> numbers_of(const Tensor& tensor) {
  const Tensor here = tensor.to(kCPU).to(DType::kF64).contiguous();
  return {here.data<double>(), here.data<double>() + here.numel()};
}

}  // namespace lockstep::dist
