#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/optimizer/matrix_exchange.h"
#include "train/optimizer/optimizer.h"

namespace lockstep::train {

/// Approximates the orthogonal factor U V^T of `matrix` = U S V^T, f32 or f64 [n, m], by
/// `iterations` Newton-Schulz iterations x <- 3.4445 x - 4.775 x x^T x + 2.0315 (x x^T)^2 x, from
/// x = matrix / its Frobenius norm. After five, singular values are between about 0.7 and 1.2 if
/// they were not below a thousandth of the norm; a matrix of zeros stays zero. `products` is the
/// dtype of the iterations, the result has that of `matrix`. Bits do not depend on threads.
Tensor orthogonalized(const Tensor& matrix, int64_t iterations, DType products);

struct MuonOptions {
  /// Learning rate of the matrices, as a multiple of the step's learning rate.
  double learning_rate_ratio = 1;
  double momentum = 0.95;  ///< above 0
  bool nesterov = true;
  int64_t iterations = 5;
  double weight_decay = 0.1;     ///< of the matrices; that of other parameters is in `others`
  DType products = DType::kF32;  ///< dtype of the Newton-Schulz iterations
  AdamWOptions others = {};      ///< AdamW of the parameters that are not matrices
};

/// Muon (Jordan 2024): momentum whose direction is orthogonalised, so that a step changes a matrix
/// about equally along all its singular directions. Each matrix takes the step
///   b = momentum * b + g;  d = nesterov ? g + momentum * b : b
///   w -= rate * (sqrt(max(1, rows / columns)) * orthogonalized(d) + weight_decay * w)
/// A parameter of more than two dimensions is the matrix [size(0), all others]. Parameters that are
/// no such matrices are updated by AdamW. Ranks that share their steps orthogonalise a part of the
/// matrices each, and get the others' results in the dtype of `products`; so do ranks that keep
/// parts of a model, of which each gets the whole direction of the matrices that it orthogonalises.
class Muon final : public Optimizer {
 public:
  /// `is_matrix` selects by name the parameters, of two or more dimensions, to orthogonalise.
  Muon(const std::vector<nn::NamedParameter>& parameters,
       const std::function<bool(std::string_view)>& is_matrix, MuonOptions options);
  const char* kind() const override { return "muon"; }
  void keep_parts_of(const dist::ShardedModel& model) override;

 private:
  std::vector<std::string> rule_state_names() const override {
    return {"momentum_buffer", "exp_avg", "exp_avg_sq"};
  }
  /// momentum_buffer of every matrix, exp_avg and exp_avg_sq of the other parameters.
  std::vector<nn::StoredParameter> rule_state() const override;
  bool rule_keeps(std::string_view name, const nn::NamedParameter& parameter) const override;
  struct Matrix {
    std::string name;
    Tensor weight;
    Tensor buffer;
  };
  void update(std::span<const uint32_t> parameters, const Update& update) override;
  /// Moves the matrices of which ranks keep parts.
  void update_parts(const Update& update) override;
  /// Calls `act` with each of these matrices, small ones beside each other on several threads.
  void for_each_matrix(std::span<const uint32_t> parameters,
                       const std::function<void(size_t i, const Matrix& matrix)>& act) const;
  /// Moves the momentum, and returns the direction to orthogonalise.
  Tensor direction_of(const Matrix& matrix, const Tensor& gradient, const Update& update) const;
  /// Moves the weight by an orthogonalised direction, of its shape, of a matrix of the size
  /// `whole`.
  void move(const Matrix& matrix, const Tensor& orthogonal, const MatrixSize& whole,
            const Update& update) const;
  /// The matrices of `update`, shared between its ranks.
  void update_together(std::span<const uint32_t> matrices, const Update& update) const;
  void update_others(std::span<const uint32_t> parameters, const Update& update);

  MuonOptions options_;
  std::function<bool(std::string_view)> is_matrix_;
  /// Index in `matrices_`, or among the parameters of `others_`, of each parameter.
  struct Place {
    bool is_matrix;
    size_t index;
  };
  std::vector<Place> places_;
  std::vector<Matrix> matrices_;
  AdamWRule others_;
  std::optional<MatrixExchange> exchange_;  ///< where the parameters are parts
};

}  // namespace lockstep::train
