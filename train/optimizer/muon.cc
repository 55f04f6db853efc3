#include "train/optimizer/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/base/phase.h"
#include "core/dispatch/mode.h"
#include "core/dispatch/observer.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "dist/fsdp/sharded_model.h"
#include "dist/group/process_group.h"
#include "train/optimizer/matrix_shares.h"

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
double scale_of(const MatrixSize& matrix) {
  const auto rows = static_cast<double>(matrix.rows);
  const auto columns = static_cast<double>(matrix.columns);
  return std::sqrt(std::max(1.0, rows / columns));
}

/// Whether Muon orthogonalises the parameter.
using Selection = std::function<bool(std::string_view)>;
bool is_selected(const nn::NamedParameter& each, const Selection& is_matrix) {
  return each.tensor.dim() >= 2 && is_matrix(each.name);
}

std::vector<nn::NamedParameter> not_selected(const std::vector<nn::NamedParameter>& parameters,
                                             const Selection& is_matrix) {
  std::vector<nn::NamedParameter> others = parameters;
  std::erase_if(others, [&](const auto& each) { return is_selected(each, is_matrix); });
  return others;
}

/// Whether the matrix is updated by one thread beside others: products of small matrices keep
/// several threads busy with waiting for each other. Where somebody looks at the calls of this
/// thread, it makes them all.
bool is_for_one_thread(const Tensor& matrix) {
  constexpr int64_t kLargest = int64_t{1} << 20;
  const ActiveModes modes = active_modes();
  return matrix.device() == kCPU && matrix.numel() <= kLargest && innermost_observer() == nullptr &&
         modes.function == nullptr && modes.dispatch == nullptr;
}

/// Calls act(i) for each of these tensors, small ones beside each other on several threads.
void for_each_of(const std::vector<Tensor>& tensors, const std::function<void(size_t i)>& act) {
  std::vector<size_t> apart;  // those of which each thread takes its own
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (is_for_one_thread(tensors[i])) {
      apart.push_back(i);
    } else {
      act(i);
    }
  }
  parallel_for(0, static_cast<int64_t>(apart.size()), 1, [&](int64_t first, int64_t last) {
    const NoGradGuard no_grad;
    const PhaseGuard phase(Phase::kOptimizer);
    for (int64_t at = first; at < last; ++at) act(apart[static_cast<size_t>(at)]);
  });
}

/// What `orthogonalized` computes, in the dtype of the iterations and not always row-major.
Tensor newton_schulz(const Tensor& matrix, int64_t iterations, DType products) {
  // x x^T is smallest where x is wide.
  const bool tall = matrix.size(0) > matrix.size(1);
  const Tensor norm = sqrt(_ordered_sum(_block_square_sums(std::vector<Tensor>{matrix})));
  Tensor x = ((tall ? matrix.t() : matrix) / (norm + kNormEpsilon)).to(products).contiguous();
  for (int64_t i = 0; i < iterations; ++i) {
    const Tensor gram = mm(x, x.t());
    x = addmm(x, addmm(gram, gram, gram, kCubic, kQuintic), x, kLinear);
  }
  return tall ? x.t() : x;
}

}  // namespace

Tensor orthogonalized(const Tensor& matrix, int64_t iterations, DType products) {
  LS_CHECK(matrix.dim() == 2, ShapeError, "[orthogonalized] expected a matrix, got shape {}.",
           matrix.shape());
  return newton_schulz(matrix, iterations, products).to(matrix.dtype()).contiguous();
}

Muon::Muon(const std::vector<nn::NamedParameter>& parameters,
           const std::function<bool(std::string_view)>& is_matrix, MuonOptions options)
    : Optimizer(parameters),
      options_(options),
      is_matrix_(is_matrix),
      others_(not_selected(parameters, is_matrix), options.others) {
  size_t others = 0;
  for (const nn::NamedParameter& each : parameters) {
    if (is_selected(each, is_matrix)) {
      places_.push_back({true, matrices_.size()});
      const Tensor& weight = each.tensor;
      matrices_.push_back({each.name, weight, zeros(weight.sizes(), weight.options())});
    } else {
      places_.push_back({false, others++});
    }
  }
}

void Muon::update(std::span<const uint32_t> parameters, const Update& update) {
  update_others(parameters, update);
  if (exchange_) return;  // update_parts has moved the matrices
  std::vector<uint32_t> matrices;
  for (const uint32_t each : parameters) {
    if (places_[each].is_matrix) matrices.push_back(each);
  }
  if (update.sharers != nullptr) return update_together(matrices, update);
  for_each_matrix(matrices, [&](size_t i, const Matrix& matrix) {
    const Tensor direction = direction_of(matrix, update.gradients[matrices[i]], update);
    move(matrix, orthogonalized(as_matrix(direction), options_.iterations, options_.products),
         size_of_matrix(matrix.weight), update);
  });
}

void Muon::keep_parts_of(const dist::ShardedModel& model) {
  std::vector<size_t> matrices;
  for (size_t i = 0; i < model.trained_count(); ++i) {
    const dist::NamedTensor& each = model.trained(i);
    if (is_selected({each.name, each.tensor}, is_matrix_)) matrices.push_back(i);
  }
  exchange_.emplace(model, matrices);
}

// Momentum and weights are parts; only the direction that is orthogonalised is ever whole.
void Muon::update_parts(const Update& update) {
  if (!exchange_) return;
  const auto matrix_of = [&](size_t part) -> const Matrix& {
    return matrices_[places_[part].index];
  };
  exchange_->run({.give =
                      [&](size_t part) {
                        return direction_of(matrix_of(part), update.gradients[part], update);
                      },
                  .compute =
                      [&](std::span<const size_t>, const std::vector<Tensor>& wholes) {
                        std::vector<Tensor> results(wholes.size());
                        for_each_of(wholes, [&](size_t i) {
                          results[i] =
                              newton_schulz(wholes[i], options_.iterations, options_.products);
                        });
                        return results;
                      },
                  .take =
                      [&](size_t part, const Tensor& result, const MatrixSize& whole) {
                        const Matrix& matrix = matrix_of(part);
                        move(matrix, result.view(matrix.weight.sizes()).to(matrix.weight.options()),
                             whole, of_group(static_cast<uint32_t>(part), update));
                      },
                  .dtype = options_.products});
}

void Muon::for_each_matrix(std::span<const uint32_t> parameters,
                           const std::function<void(size_t i, const Matrix& matrix)>& act) const {
  std::vector<Tensor> weights;
  for (const uint32_t each : parameters) weights.push_back(matrices_[places_[each].index].weight);
  for_each_of(weights, [&](size_t i) { act(i, matrices_[places_[parameters[i]].index]); });
}

// Momentum and weights stay whole on every rank: a rank's checkpoint needs no other's part.
void Muon::update_together(std::span<const uint32_t> matrices, const Update& update) const {
  dist::ProcessGroup& ranks = *update.sharers;
  std::vector<MatrixSize> sizes;
  for (const uint32_t each : matrices) {
    sizes.push_back(size_of_matrix(matrices_[places_[each].index].weight));
  }
  const MatrixShares shares(sizes, ranks.size());
  if (shares.room() == 0) return;
  const TensorOptions options{options_.products, matrices_.front().weight.device()};
  const Tensor all = zeros({ranks.size(), shares.room()}, options);
  const Tensor own = all.select(0, ranks.rank());
  const auto place_in = [&](const Tensor& results, size_t i) {
    return results.slice(0, shares.offset(i), shares.offset(i) + sizes[i].elements())
        .view({sizes[i].rows, sizes[i].columns});
  };
  for_each_matrix(matrices, [&](size_t i, const Matrix& matrix) {
    const Tensor direction = direction_of(matrix, update.gradients[matrices[i]], update);
    if (shares.owner(i) != ranks.rank()) return;
    place_in(own, i).copy_(
        newton_schulz(as_matrix(direction), options_.iterations, options_.products));
  });
  ranks.all_gather(all, own).wait();
  for_each_matrix(matrices, [&](size_t i, const Matrix& matrix) {
    const Tensor result = place_in(all.select(0, shares.owner(i)), i);
    move(matrix, result.to(matrix.weight.dtype()), sizes[i], update);
  });
}

// Both halves are steps of SGD, whose kernel reads the factors and skips the step where it must.
Tensor Muon::direction_of(const Matrix& matrix, const Tensor& gradient,
                          const Update& update) const {
  using List = std::vector<Tensor>;
  // At a rate of -1 a step from zero ends at SGD's direction.
  Tensor direction = zeros(matrix.weight.sizes(), matrix.weight.options());
  _fused_sgd_(List{direction}, List{gradient}, List{matrix.buffer}, -1, options_.momentum,
              options_.nesterov, 0, update.grad_scale, {}, update.known_there.grad_factor,
              update.known_there.found_inf);
  return direction;
}

void Muon::move(const Matrix& matrix, const Tensor& orthogonal, const MatrixSize& whole,
                const Update& update) const {
  using List = std::vector<Tensor>;
  const Tensor cast = kept_cast(matrix.weight);
  _fused_sgd_(List{as_matrix(matrix.weight)}, List{orthogonal * scale_of(whole)}, {},
              update.learning_rate * options_.learning_rate_ratio, 0, false,
              update.decay_or(options_.weight_decay), 1, {}, {}, update.known_there.found_inf,
              cast.defined() ? List{as_matrix(cast)} : List());
  if (cast.defined()) renew_kept_cast(matrix.weight);
}

void Muon::update_others(std::span<const uint32_t> parameters, const Update& update) {
  std::vector<uint32_t> numbers;
  std::vector<Tensor> gradients(others_.size());
  for (const uint32_t each : parameters) {
    const auto [is_matrix, i] = places_[each];
    if (is_matrix) continue;
    numbers.push_back(static_cast<uint32_t>(i));
    gradients[i] = update.gradients[each];
  }
  if (numbers.empty()) return;
  others_.update(
      numbers,
      {gradients, update.learning_rate, update.grad_scale, update.known_there, update.weight_decay},
      step_count());
}

bool Muon::rule_keeps(std::string_view name, const nn::NamedParameter& parameter) const {
  return is_selected(parameter, is_matrix_) == (name == "momentum_buffer");
}

std::vector<nn::StoredParameter> Muon::rule_state() const {
  std::vector<nn::StoredParameter> state;
  for (const Matrix& each : matrices_) {
    state.push_back({"momentum_buffer." + each.name, each.buffer});
  }
  for (nn::StoredParameter& each : others_.state()) state.push_back(std::move(each));
  return state;
}

}  // namespace lockstep::train
