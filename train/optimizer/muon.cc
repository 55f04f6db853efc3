#include "train/optimizer/muon.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"

namespace lockstep::train {

namespace {

// Coefficients of the quintic (Jordan 2024). Its slope of 3.4445 at zero brings small singular
// values up in few iterations; in exchange, those near 1 move within a band around 1.
constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315;
// Added to the norm, as in the published code: a direction of zeros gives a step of zeros.
constexpr double kNormEpsilon = 1e-7;

Tensor as_matrix(const Tensor& tensor) { return tensor.dim() == 2 ? tensor : tensor.flatten(1); }

/// The factor of Jordan's code, which makes the change of a layer's outputs independent of how much
/// wider they are than its inputs.
double scale_of(const Tensor& matrix) {
  const auto rows = static_cast<double>(matrix.size(0));
  const auto columns = static_cast<double>(matrix.size(1));
  return std::sqrt(std::max(1.0, rows / columns));
}

}  // namespace

Tensor orthogonalized(const Tensor& matrix, int64_t iterations, DType products) {
  LS_CHECK(matrix.dim() == 2, ShapeError, "[orthogonalized] expected a matrix, got shape {}.",
           matrix.shape());
  // x x^T is smallest where x is wide.
  const bool tall = matrix.size(0) > matrix.size(1);
  const Tensor norm = sqrt(_ordered_sum(_block_square_sums(std::vector<Tensor>{matrix})));
  Tensor x = ((tall ? matrix.t() : matrix) / (norm + kNormEpsilon)).to(products).contiguous();
  for (int64_t i = 0; i < iterations; ++i) {
    const Tensor gram = mm(x, x.t());
    x = addmm(x, addmm(gram, gram, gram, kCubic, kQuintic), x, kLinear);
  }
  return (tall ? x.t() : x).to(matrix.dtype()).contiguous();
}

Muon::Muon(const std::vector<nn::NamedParameter>& parameters,
           const std::function<bool(std::string_view)>& is_matrix, MuonOptions options)
    : Optimizer(parameters), options_(options) {
  const auto state_of = [](const Tensor& weight) {
    return zeros(weight.sizes(), weight.options());
  };
  for (const nn::NamedParameter& each : parameters) {
    const Tensor& weight = each.tensor;
    if (weight.dim() >= 2 && is_matrix(each.name)) {
      places_.push_back({true, matrices_.size()});
      matrices_.push_back({each.name, weight, state_of(weight)});
    } else {
      places_.push_back({false, others_.names.size()});
      others_.names.push_back(each.name);
      others_.weights.push_back(weight);
      others_.means.push_back(state_of(weight));
      others_.squares.push_back(state_of(weight));
      others_.decayed.push_back(weight.dim() >= 2 ? 1 : 0);
    }
  }
}

void Muon::update(const Update& update) {
  std::vector<uint32_t> all(places_.size());
  std::iota(all.begin(), all.end(), 0);
  this->update(all, update);
}

void Muon::update(std::span<const uint32_t> parameters, const Update& update) {
  update_others(parameters, update);
  for (const uint32_t each : parameters) {
    const Place place = places_[each];
    if (place.is_matrix) update_matrix(matrices_[place.index], update.gradients[each], update);
  }
}

// Both halves are steps of SGD, whose kernel reads the factors and skips the step where it must.
void Muon::update_matrix(const Matrix& matrix, const Tensor& gradient, const Update& update) {
  using List = std::vector<Tensor>;
  // At a rate of -1 a step from zero ends at SGD's direction.
  const Tensor direction = zeros(matrix.weight.sizes(), matrix.weight.options());
  _fused_sgd_(List{direction}, List{gradient}, List{matrix.buffer}, -1, options_.momentum,
              options_.nesterov, 0, update.grad_scale, {}, update.known_there.grad_factor,
              update.known_there.found_inf);
  const Tensor step = orthogonalized(as_matrix(direction), options_.iterations, options_.products);
  _fused_sgd_(List{as_matrix(matrix.weight)}, List{step * scale_of(step)}, {},
              update.learning_rate * options_.learning_rate_ratio, 0, false, options_.weight_decay,
              1, {}, {}, update.known_there.found_inf);
}

void Muon::update_others(std::span<const uint32_t> parameters, const Update& update) {
  std::vector<Tensor> weights, gradients, means, squares;
  std::vector<int64_t> decayed;
  for (const uint32_t each : parameters) {
    const auto [is_matrix, i] = places_[each];
    if (is_matrix) continue;
    weights.push_back(others_.weights[i]);
    gradients.push_back(update.gradients[each]);
    means.push_back(others_.means[i]);
    squares.push_back(others_.squares[i]);
    decayed.push_back(others_.decayed[i]);
  }
  if (weights.empty()) return;
  const AdamWOptions& o = options_.others;
  _fused_adamw_(weights, gradients, means, squares, update.learning_rate, o.beta1, o.beta2,
                o.weight_decay, o.epsilon, step_count(), update.grad_scale, decayed,
                update.known_there.grad_factor, update.known_there.found_inf);
}

std::vector<nn::StoredParameter> Muon::state() const {
  std::vector<nn::StoredParameter> state;
  for (const Matrix& each : matrices_) {
    state.push_back({"momentum_buffer." + each.name, each.buffer});
  }
  for (size_t i = 0; i < others_.names.size(); ++i) {
    state.push_back({"exp_avg." + others_.names[i], others_.means[i]});
  }
  for (size_t i = 0; i < others_.names.size(); ++i) {
    state.push_back({"exp_avg_sq." + others_.names[i], others_.squares[i]});
  }
  return state;
}

}  // namespace lockstep::train
