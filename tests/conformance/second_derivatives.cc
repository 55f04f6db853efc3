#include "tests/conformance/second_derivatives.h"

#include <algorithm>
#include <cmath>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "core/base/check.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "tests/conformance/call_arguments.h"
#include "tests/conformance/elements.h"
#include "tests/conformance/recorded_call.h"

namespace lockstep::conformance {

namespace {

/// Limit on the elements of inputs and outputs together; above it a case is checked along lines.
constexpr int64_t kMaxElements = 200;
/// Distance from the recorded arguments for a second try.
constexpr double kAside = 1e-3;

/// Distinct numbers in [-1, 1).
std::vector<double> fixed_numbers(int64_t count, int seed) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    const double product = static_cast<double>(i + 1 + 31 * seed) * 0.7548776662466927;
    numbers.push_back(2 * (product - std::floor(product)) - 1);
  }
  return numbers;
}

Tensor fixed_tensor(IntList sizes, int seed) {
  const Tensor tensor = empty_tensor(sizes, DType::kF64);
  set_elements(tensor, fixed_numbers(tensor.numel(), seed));
  return tensor;
}

Tensor in_double(const Tensor& tensor) {
  const bool floating = is_floating(tensor.dtype());
  return laid_out_alike(tensor, floating ? DType::kF64 : tensor.dtype(), kCPU);
}

/// The same elements in a contiguous tensor.
Tensor dense(const Tensor& tensor) {
  const Tensor copy = empty_tensor(tensor.sizes(), tensor.dtype());
  set_elements(copy, elements_as<double>(tensor));
  return copy;
}

/// A case as a function of the arguments that have recorded gradients. Its values are the results
/// with cotangents. Arguments and values are on the CPU; the operator runs on a device.
class CaseFunction {
 public:
  CaseFunction(const Operator& op, const Case& one, const CaseFile& file, Device device)
      : op_(op), device_(device) {
    const std::vector<Value> recorded = call_arguments(op.schema(), one, file);
    arguments_ = map_tensors(recorded, in_double);
    for (Value& value : arguments_) {
      if (value.tag() == Value::Tag::kDType && is_floating(value.to_dtype())) {
        value = Value(DType::kF64);
      }
    }
    for (const ExpectedGradient& gradient : one.gradients) {
      places_.push_back(differentiated(op.schema(), arguments_, gradient));
      const Tensor& place = places_.back();
      inputs_.push_back(may_self_overlap(place.sizes(), place.strides()) ? dense(place) : place);
      inputs_.back().set_requires_grad();
    }
    for (const auto& [index, value] : one.cotangents) outputs_.push_back(index);
  }

  const std::vector<Tensor>& inputs() const { return inputs_; }

  std::vector<Tensor> operator()(TensorList inputs) const {
    std::vector<Value> arguments = map_tensors(arguments_, [&](const Tensor& tensor) {
      for (size_t i = 0; i < places_.size(); ++i) {
        if (tensor.is_same(places_[i])) return inputs[i].to(device_);
      }
      return tensor;
    });
    const DefaultDeviceGuard on_device(device_);
    std::vector<Value> there = conformance::on_device(op_.schema(), arguments, device_);
    const std::vector<Value> results = call(op_, there);
    std::vector<Tensor> outputs;
    for (const size_t index : outputs_) outputs.push_back(results.at(index).tensor().to(kCPU));
    return outputs;
  }

 private:
  const Operator& op_;
  Device device_;
  std::vector<Value> arguments_;
  std::vector<Tensor> places_;  ///< the inputs in arguments_
  std::vector<Tensor> inputs_;
  std::vector<size_t> outputs_;
};

/// A function to differentiate, and the point.
struct Problem {
  TensorsFunction function;
  std::vector<Tensor> inputs;
};

/// Reduces each input to one number, the distance along a fixed direction, and each output to a
/// weighted sum.
Problem along_lines(const CaseFunction& function) {
  std::vector<Tensor> numbers;
  std::vector<Tensor> starts;
  std::vector<Tensor> directions;
  for (const Tensor& input : function.inputs()) {
    numbers.push_back(empty_tensor({}, DType::kF64));
    set_elements(numbers.back(), std::vector<double>{0});
    numbers.back().set_requires_grad();
    starts.push_back(input.detach());
    directions.push_back(fixed_tensor(input.sizes(), static_cast<int>(starts.size())));
  }
  const auto along = [=](TensorList distances) {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < starts.size(); ++i) {
      inputs.push_back(starts[i] + directions[i] * distances[i]);
    }
    std::vector<Tensor> sums;
    for (const Tensor& output : function(inputs)) {
      sums.push_back(sum(output * fixed_tensor(output.sizes(), 5)));
    }
    return sums;
  };
  return {along, numbers};
}

/// Gradients of the weighted outputs, concatenated.
std::vector<double> gradients(const Problem& problem) {
  const std::vector<Tensor> outputs = problem.function(problem.inputs);
  std::vector<Tensor> roots;
  std::vector<Tensor> seeds;
  for (const Tensor& output : outputs) {
    if (!output.requires_grad()) continue;
    roots.push_back(output);
    seeds.push_back(fixed_tensor(output.sizes(), 3 + static_cast<int>(roots.size())));
  }
  GradOptions options;
  options.allow_unused = true;
  const std::vector<Tensor> found = grad(roots, problem.inputs, seeds, options);
  std::vector<double> all;
  for (size_t i = 0; i < found.size(); ++i) {
    const std::vector<double> values =
        found[i].defined() ? elements_as<double>(found[i])
                           : std::vector<double>(static_cast<size_t>(problem.inputs[i].numel()));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

enum class Smoothness : uint8_t { kSmooth, kKink, kNotFinite };

/// Estimates slopes of the gradients on both sides of each element. A differentiable function has
/// the same slope on both sides and over all widths; a staircase may agree over two of them.
Smoothness smoothness(const Problem& problem) {
  constexpr double kWidth = 1e-6;
  const std::vector<double> here = gradients(problem);
  Smoothness worst = Smoothness::kSmooth;
  for (const Tensor& input : problem.inputs) {
    const std::vector<double> original = elements_as<double>(input);
    for (size_t i = 0; i < original.size(); ++i) {
      std::vector<std::vector<double>> slopes;
      for (const double widths : {-2.0, -1.0, -0.25, 0.25, 1.0, 2.0}) {
        const double step = widths * kWidth;
        std::vector<double> moved = original;
        moved[i] += step;
        set_elements(input, moved);
        std::vector<double>& slope = slopes.emplace_back(gradients(problem));
        for (size_t j = 0; j < slope.size(); ++j) slope[j] = (slope[j] - here[j]) / step;
      }
      set_elements(input, original);
      for (size_t j = 0; j < here.size(); ++j) {
        for (const std::vector<double>& slope : slopes) {
          if (!std::isfinite(slope[j])) return Smoothness::kNotFinite;
          const double apart = std::abs(slope[j] - slopes[0][j]);
          if (apart > 1e-3 + 1e-2 * std::abs(slopes[0][j])) worst = Smoothness::kKink;
        }
      }
    }
  }
  return worst;
}

void move_aside(const Problem& problem) {
  int seed = 11;
  for (const Tensor& input : problem.inputs) {
    std::vector<double> elements = elements_as<double>(input);
    const std::vector<double> steps = fixed_numbers(input.numel(), seed++);
    for (size_t i = 0; i < elements.size(); ++i) elements[i] += kAside * steps[i];
    set_elements(input, elements);
  }
}

/// Checks second derivatives. Returns kSmooth when they agree, or why they cannot be checked here.
/// Throws when they disagree although the function is smooth here.
Smoothness check(const Problem& problem) {
  try {
    gradgradcheck(problem.function, problem.inputs);
    return Smoothness::kSmooth;
  } catch (const AutogradError&) {
    const Smoothness found = smoothness(problem);
    if (found == Smoothness::kSmooth) throw;
    return found;
  }
}

bool is_recorded(const CaseFunction& function) {
  const std::vector<Tensor> outputs = function(function.inputs());
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const Tensor& output) { return output.requires_grad(); });
}

int64_t element_count(const CaseFunction& function) {
  int64_t count = 0;
  for (const Tensor& input : function.inputs()) count += input.numel();
  for (const Tensor& output : function(function.inputs())) count += output.numel();
  return count;
}

}  // namespace

SecondDerivatives check_second_derivatives(const Operator& op, const Case& one,
                                           const CaseFile& file, Device device) {
  const EnableGradGuard recording;
  const DefaultDeviceGuard on_cpu(kCPU);
  const CaseFunction function(op, one, file, device);
  if (!is_recorded(function)) return {false, "the gradient is zero everywhere"};
  const bool large = element_count(function) > kMaxElements;
  const Problem problem = large ? along_lines(function) : Problem{function, function.inputs()};
  std::string reason =
      large ? fmt::format("more than {} elements: along one line an argument", kMaxElements) : "";
  Smoothness found = check(problem);
  if (found == Smoothness::kSmooth) return {true, reason};
  if (large) reason += ", ";
  const char* kWhy[] = {"", "at a kink", "derivatives that are not finite"};
  reason += kWhy[static_cast<int>(found)];
  move_aside(problem);
  found = check(problem);
  if (found == Smoothness::kSmooth) return {true, fmt::format("{}: {} beside it", reason, kAside)};
  return {false,
          fmt::format("{}, and {} {} beside it", reason, kWhy[static_cast<int>(found)], kAside)};
}

}  // namespace lockstep::conformance
