#include "optim/parameter_list.h"

#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"

namespace lockstep::optim {

ParameterList::ParameterList(const std::vector<Tensor>& parameters) {
  for (const Tensor& parameter : parameters) entries_.push_back({"", parameter});
}

ParameterList::ParameterList(std::initializer_list<Tensor> parameters)
    : ParameterList(std::vector<Tensor>(parameters)) {}

std::string ParameterList::describe(size_t i, size_t offset) const {
  return "parameter " + (name(i).empty() ? std::to_string(offset + i) : name(i));
}

void reset_gradient(const Tensor& parameter, bool set_to_none) {
  const NoGradGuard no_grad;
  const Tensor& grad = parameter.grad();
  if (!grad.defined()) return;
  if (set_to_none) {
    parameter.set_grad({});
  } else if (grad.requires_grad()) {  // made under create_graph: replaced, to drop its history
    parameter.set_grad(zeros_like(grad));
  } else {
    grad.zero_();
  }
}

}  // namespace lockstep::optim
