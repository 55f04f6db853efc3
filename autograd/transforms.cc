#include "autograd/transforms.h"

#include "autograd/batched_tensor.h"
#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/scoped_value.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

thread_local constinit int t_running = 0;

/// An input of the function, batched at every level, and the leaf behind all levels.
struct Leaf {
  Tensor seen;
  Tensor whole;
};

Leaf fresh_leaf(const Tensor& input, bool connected) {
  const Tensor everywhere = batched_everywhere(input);
  const OuterVmapsGuard none(0);
  const Tensor whole = innermost_whole(everywhere);
  Tensor leaf;
  if (connected && whole.requires_grad()) {
    leaf = alias(whole);
  } else {
    leaf = whole.detach();
    leaf.set_requires_grad();
  }
  return {everywhere, leaf};
}

void check_value(const Tensor& value) {
  LS_CHECK(value.defined() && is_floating(value.dtype()) && value.numel() == 1, AutogradError,
           "[grad] only a function that returns one floating number has a gradient: expected a 0-d "
           "tensor, got {}. Sum or average what it returns.",
           value.defined() ? to_string(value) : "nothing");
}

}  // namespace

ValueAndGradients value_and_gradients(const TensorFunction& function, TensorList inputs,
                                      std::span<const int64_t> arguments, bool create_graph) {
  const bool outside_records = is_grad_enabled();
  bool differentiable = create_graph || (outside_records && t_running > 0);
  const EnableGradGuard recording;
  std::vector<Tensor> given(inputs.begin(), inputs.end());
  std::vector<Leaf> leaves;
  std::vector<Tensor> wholes;
  for (const int64_t i : arguments) {
    LS_CHECK(i >= 0 && i < static_cast<int64_t>(inputs.size()), IndexError,
             "[grad] there is no input {}: expected a number below {}.", i, inputs.size());
    Leaf leaf = fresh_leaf(inputs[static_cast<size_t>(i)], outside_records);
    differentiable |= !leaf.whole.is_leaf();
    given[static_cast<size_t>(i)] = batched_like(leaf.seen, leaf.whole);
    wholes.push_back(leaf.whole);
    leaves.push_back(std::move(leaf));
  }
  ValueAndGradients result;
  {
    const ScopedValue<int> running(t_running, t_running + 1);
    result.value = function(given);
  }
  check_value(result.value);

  std::vector<Tensor> gradients(leaves.size());
  const Tensor whole_value = innermost_whole(result.value);
  {
    const OuterVmapsGuard none(0);
    if (whole_value.requires_grad()) {
      GradOptions options;
      options.create_graph = differentiable;
      options.allow_unused = true;
      const Tensor one = ones(whole_value.sizes(), whole_value.options());
      gradients = grad({whole_value}, wholes, {one}, options);
    }
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) gradients[i] = zeros(wholes[i].sizes(), wholes[i].options());
    }
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    result.gradients.push_back(batched_like(leaves[i].seen, gradients[i]));
  }
  if (!differentiable) result.value = result.value.detach();
  return result;
}

}  // namespace lockstep
