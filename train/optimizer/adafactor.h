#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/optimizer/adafactor.h"
#include "train/optimizer/matrix_exchange.h"
#include "train/optimizer/optimizer.h"

namespace lockstep::train {

/// Adafactor (Shazeer & Stern 2018): core/ops/optimizer/adafactor.h has the formula. Ranks that
/// keep parts of a model put each whole gradient together on one of them, which alone keeps that
/// parameter's state, and gives the others their parts of the direction. The bits are those of a
/// rank with the whole model.
class Adafactor final : public Optimizer {
 public:
  /// The learning rate of `rule` is not used: it is that of the step.
  Adafactor(const std::vector<nn::NamedParameter>& parameters, AdafactorRule rule);
  const char* kind() const override { return "adafactor"; }
  void keep_parts_of(const dist::ShardedModel& model) override;

 private:
  std::vector<std::string> rule_state_names() const override {
    return {"exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq"};
  }
  /// exp_avg_sq_row and exp_avg_sq_col of parameters of two or more dimensions, exp_avg_sq of the
  /// others.
  std::vector<nn::StoredParameter> rule_state() const override;
  bool rule_keeps(std::string_view name, const nn::NamedParameter& parameter) const override;
  Dims rule_state_sizes(std::string_view name, const nn::NamedParameter& parameter) const override;
  std::optional<int> rule_state_owner(size_t number) const override;
  void update(std::span<const uint32_t> parameters, const Update& update) override;
  /// Moves the parameters of which ranks keep parts.
  void update_parts(const Update& update) override;
  /// Begins the state of a whole parameter.
  void keep_state(const std::string& name, IntList sizes, TensorOptions options);
  /// The rule of one of `parameters_`.
  AdafactorRule rule_of(size_t parameter, const Update& update) const;
  /// The direction of a trained parameter of the model, by its whole gradient.
  Tensor whole_direction(size_t number, const Tensor& gradient, const Update& update) const;
  /// The root mean square of the whole of each of `parameters_`.
  std::vector<Tensor> whole_rms() const;

  AdafactorRule rule_;
  std::vector<Tensor> parameters_;
  struct Item {
    std::string name;
    AdafactorState state;
  };
  std::vector<Item>
      items_;  ///< of the parameters; of the whole ones that this rank has the state of
  /// Where the parameters are parts.
  struct Spread {
    const dist::ShardedModel& model;
    MatrixExchange exchange;          ///< of all trained parameters
    std::vector<size_t> number_of;    ///< by part: its parameter's
    std::vector<int64_t> blocks_end;  ///< of the trained parameters, in all of the model's blocks
    std::vector<size_t> item_of;      ///< by trained parameter, where this rank has its state
  };
  std::optional<Spread> spread_;
};

}  // namespace lockstep::train
