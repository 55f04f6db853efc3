#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/check.h"

namespace lockstep {

namespace {

/// Address of element `index`, counted row by row, of a tensor with any strides.
double& element(const Tensor& tensor, int64_t index) {
  int64_t place = 0;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    place += index % tensor.size(d) * tensor.stride(d);
    index /= tensor.size(d);
  }
  return tensor.data<double>()[place];
}

std::vector<Tensor> differentiable(std::vector<Tensor> outputs) {
  std::erase_if(outputs, [](const Tensor& t) { return !t.defined() || !is_floating(t.dtype()); });
  for (const Tensor& output : outputs) {
    LS_CHECK(output.dtype() == DType::kF64, DTypeError,
             "[gradcheck] an output has the wrong dtype: expected float64, got {}.",
             to_string(output));
  }
  return outputs;
}

std::vector<size_t> checked_inputs(TensorList inputs) {
  std::vector<size_t> checked;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
    LS_CHECK(inputs[i].dtype() == DType::kF64 && inputs[i].device() == kCPU, DTypeError,
             "[gradcheck] input {} must be float64 on cpu, got {}.", i, to_string(inputs[i]));
    LS_CHECK(inputs[i].is_leaf(), AutogradError, "[gradcheck] input {} must be a leaf: {}.", i,
             to_string(inputs[i]));
    checked.push_back(i);
  }
  LS_CHECK(!checked.empty(), AutogradError,
           "[gradcheck] nothing to check: expected an input that requires grad, got none.");
  return checked;
}

std::vector<double> values(const std::vector<Tensor>& tensors) {
  std::vector<double> all;
  for (const Tensor& tensor : tensors) {
    for (int64_t i = 0; i < tensor.numel(); ++i) all.push_back(element(tensor, i));
  }
  return all;
}

/// A derivative by a central difference, and the error that rounding of the outputs may cause.
struct Slope {
  double value = 0;
  double rounding = 0;
};

/// d(every output element)/d(element `index` of `input`).
std::vector<Slope> difference(const TensorsFunction& function, TensorList inputs,
                              const Tensor& input, int64_t index, double step) {
  const NoGradGuard guard;
  double& place = element(input, index);
  const double original = place;
  place = original + step;
  const std::vector<double> above = values(differentiable(function(inputs)));
  place = original - step;
  const std::vector<double> below = values(differentiable(function(inputs)));
  place = original;
  std::vector<Slope> slopes;
  for (size_t i = 0; i < above.size(); ++i) {
    const double size = std::max(std::abs(above[i]), std::abs(below[i]));
    slopes.push_back(
        {(above[i] - below[i]) / (2 * step), size * std::numeric_limits<double>::epsilon() / step});
  }
  return slopes;
}

Tensor one_hot(const Tensor& like, int64_t index) {
  Tensor hot = empty_tensor(like.sizes(), DType::kF64);
  for (int64_t i = 0; i < hot.numel(); ++i) hot.data<double>()[i] = i == index ? 1 : 0;
  return hot;
}

/// One backward for every output element: gradients of the checked inputs, undefined meaning zero.
std::vector<std::vector<Tensor>> jacobian_rows(const std::vector<Tensor>& outputs,
                                               const std::vector<Tensor>& leaves) {
  std::vector<std::vector<Tensor>> rows;
  GradOptions options;
  options.retain_graph = options.allow_unused = true;
  for (const Tensor& output : outputs) {
    for (int64_t i = 0; i < output.numel(); ++i) {
      if (output.requires_grad()) {
        rows.push_back(grad({&output, 1}, leaves, {one_hot(output, i)}, options));
      } else {
        rows.emplace_back(leaves.size());
      }
    }
  }
  return rows;
}

/// Names the output, and its element, that row `row` of the Jacobian belongs to.
std::string output_name(const std::vector<Tensor>& outputs, size_t row) {
  size_t output = 0;
  while (row >= static_cast<size_t>(outputs[output].numel())) {
    row -= static_cast<size_t>(outputs[output++].numel());
  }
  return fmt::format("output {} element {}", output, row);
}

double gradient_at(const Tensor& gradient, int64_t index) {
  return gradient.defined() ? element(gradient, index) : 0;
}

/// A fixed pseudo-random number in [-1, 1), from multiples of the golden ratio.
double weight(int64_t index) {
  const double product = static_cast<double>(index + 1) * 0.6180339887498949;
  return 2 * (product - std::floor(product)) - 1;
}

TensorsFunction as_list(const TensorFunction& function) {
  return [function](TensorList inputs) { return std::vector<Tensor>{function(inputs)}; };
}

}  // namespace

bool gradcheck(const TensorsFunction& function, TensorList inputs, GradcheckOptions options) {
  const EnableGradGuard guard;
  const std::vector<size_t> checked = checked_inputs(inputs);
  std::vector<Tensor> leaves;
  for (const size_t i : checked) leaves.push_back(inputs[i]);
  const std::vector<Tensor> outputs = differentiable(function(inputs));
  const std::vector<std::vector<Tensor>> rows = jacobian_rows(outputs, leaves);
  const std::vector<std::vector<Tensor>> again = jacobian_rows(outputs, leaves);
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    for (int64_t i = 0; i < leaves[leaf].numel(); ++i) {
      const std::vector<Slope> numerical =
          difference(function, inputs, leaves[leaf], i, options.step);
      LS_ASSERT(numerical.size() == rows.size());
      for (size_t row = 0; row < rows.size(); ++row) {
        const double found = gradient_at(rows[row][leaf], i);
        const double second = gradient_at(again[row][leaf], i);
        const bool both_nan = std::isnan(found) && std::isnan(second);
        LS_CHECK(both_nan || std::abs(found - second) <= options.nondeterminism, AutogradError,
                 "[gradcheck] backward is not deterministic: the derivative of {} with respect to "
                 "input {} element {} was {:.17g} and then {:.17g}.",
                 output_name(outputs, row), checked[leaf], i, found, second);
        const auto [wanted, rounding] = numerical[row];
        const double allowed = options.absolute + options.relative * std::abs(wanted) + rounding;
        LS_CHECK(std::abs(found - wanted) <= allowed, AutogradError,
                 "[gradcheck] the derivative of {} with respect to input {} element {} differs: "
                 "numerical {:.8g}, from backward {:.8g}.",
                 output_name(outputs, row), checked[leaf], i, wanted, found);
      }
    }
  }
  return true;
}

bool gradgradcheck(const TensorsFunction& function, TensorList inputs, GradcheckOptions options) {
  const EnableGradGuard guard;
  const std::vector<size_t> checked = checked_inputs(inputs);
  std::vector<Tensor> all(inputs.begin(), inputs.end());
  int64_t index = 0;
  for (const Tensor& output : differentiable(function(inputs))) {
    Tensor& weights = all.emplace_back(empty_tensor(output.sizes(), DType::kF64));
    for (int64_t i = 0; i < weights.numel(); ++i) weights.data<double>()[i] = weight(index++);
    weights.set_requires_grad();
  }
  const size_t count = inputs.size();
  const TensorsFunction gradients = [&](TensorList arguments) {
    const EnableGradGuard recording;
    const std::vector<Tensor> outputs = differentiable(function(arguments.first(count)));
    std::vector<Tensor> roots;
    std::vector<Tensor> seeds;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      seeds.push_back(arguments[count + i]);
    }
    std::vector<Tensor> leaves;
    for (const size_t i : checked) leaves.push_back(arguments[i]);
    GradOptions how;
    how.create_graph = how.allow_unused = true;
    return grad(roots, leaves, seeds, how);
  };
  return gradcheck(gradients, all, options);
}

bool gradcheck(const TensorFunction& function, TensorList inputs, GradcheckOptions options) {
  return gradcheck(as_list(function), inputs, options);
}

bool gradgradcheck(const TensorFunction& function, TensorList inputs, GradcheckOptions options) {
  return gradgradcheck(as_list(function), inputs, options);
}

}  // namespace lockstep
