// First and second derivatives of every operator, compared with central differences in float64.

#include "autograd/gradcheck.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ops/operator_call.h"

namespace lockstep {
namespace {

/// An operator as a function of its tensors, with the other arguments fixed. Its results are the
/// float64 ones that require grad when the tensors do.
class TensorCall {
 public:
  TensorCall(const Operator& op, const Sample& sample, const OpSamples& samples)
      : op_(op), arguments_(map_tensors(arguments_of(op, sample), in_double)) {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const std::string& name = op.schema().arguments[i].name;
      const bool constant = std::find(samples.constants.begin(), samples.constants.end(), name) !=
                            samples.constants.end();
      each_defined_tensor(arguments_[i], [&](const Tensor& tensor) {
        if (!constant && tensor.dtype() == DType::kF64) tensor.set_requires_grad();
        inputs_.push_back(tensor);
      });
    }
    Arguments arguments = arguments_;
    for (const Tensor& result : call_operator(op_, arguments).tensors) {
      used_.push_back(result.defined() && result.dtype() == DType::kF64 && result.requires_grad());
    }
  }

  const std::vector<Tensor>& inputs() const { return inputs_; }
  bool has_result() const { return std::find(used_.begin(), used_.end(), true) != used_.end(); }
  bool has_input() const {
    return std::any_of(inputs_.begin(), inputs_.end(),
                       [](const Tensor& tensor) { return tensor.requires_grad(); });
  }

  std::vector<Tensor> operator()(TensorList inputs) const {
    size_t next = 0;
    Arguments arguments = map_tensors(arguments_, [&](const Tensor&) { return inputs[next++]; });
    const Results results = call_operator(op_, arguments);
    std::vector<Tensor> used;
    for (size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]) used.push_back(results.tensors[i]);
    }
    return used;
  }

 private:
  static Tensor in_double(const Tensor& tensor) {
    return tensor.dtype() == DType::kF32 ? cast_copy(tensor, DType::kF64) : tensor;
  }

  const Operator& op_;
  Arguments arguments_;
  std::vector<Tensor> inputs_;
  std::vector<bool> used_;
};

bool is_differentiable(const Operator& op) {
  return !op.schema().is_mutable() && (op.derivative().exists() || op.kind() == OpKind::kComposite);
}

/// Calls `check` for every sample with a differentiable float64 result.
void check_samples(const Operator& op, const OpSamples& samples,
                   const std::function<bool(const TensorsFunction&, TensorList)>& check) {
  int checked = 0;
  for_each_sample(samples.calls, [&](const Sample& sample) {
    if (!sample.no_gradcheck.empty()) return;
    const TensorCall function(op, sample, samples);
    if (!function.has_input() || !function.has_result()) return;
    EXPECT_TRUE(check(function, function.inputs()));
    ++checked;
  });
  if (!op.derivative().exists()) return;
  EXPECT_GT(checked, 0) << "no sample carries a gradient";
}

TEST(Gradcheck, DerivativesAgreeWithDifferences) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    if (!is_differentiable(op) || !samples.no_gradcheck.empty()) return;
    check_samples(op, samples, [](const TensorsFunction& function, TensorList inputs) {
      return gradcheck(function, inputs);
    });
  });
}

TEST(Gradcheck, SecondDerivativesAgreeWithDifferences) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    const bool excused = !samples.no_gradcheck.empty() || !samples.no_gradgradcheck.empty();
    if (!is_differentiable(op) || excused) return;
    check_samples(op, samples, [](const TensorsFunction& function, TensorList inputs) {
      return gradgradcheck(function, inputs);
    });
  });
}

}  // namespace
}  // namespace lockstep
