#include "nn/joint_linear.h"

#include <algorithm>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "core/ops/matmul/linear_of_parts.h"
#include "core/ops/view/shape.h"

namespace lockstep::nn {

JointLinear::JointLinear(std::vector<const Linear*> parts) : parts_(std::move(parts)) {
  const NoGradGuard no_grad;
  lay_side_by_side(weights());
  keep_casts_side_by_side(weights());
}

std::vector<Tensor> JointLinear::weights() const {
  std::vector<Tensor> weights;
  for (const Linear* each : parts_) weights.push_back(each->weight);
  return weights;
}

Tensor JointLinear::forward(const Tensor& x) const {
  const bool is_more_than_a_product = std::ranges::any_of(parts_, [](const Linear* each) {
    return each->has_forward_hooks() || each->lora() != nullptr;
  });
  if (is_more_than_a_product) {
    std::vector<Tensor> results;
    for (const Linear* each : parts_) results.push_back(each->forward(x));
    return cat(results, -1);
  }
  const ModuleScope scope(parts_[0]->path());
  return linear_of_parts(x, weights());
}

}  // namespace lockstep::nn
