#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/ops/optimizer/adafactor.h"
#include "train/optimizer/optimizer.h"

namespace lockstep::train {

/// Adafactor (Shazeer & Stern 2018): core/ops/optimizer/adafactor.h has the formula. Reads whole
/// tensors.
class Adafactor final : public Optimizer {
 public:
  /// The learning rate of `rule` is not used: it is that of the step.
  Adafactor(const std::vector<nn::NamedParameter>& parameters, AdafactorRule rule);
  const char* kind() const override { return "adafactor"; }

 private:
  std::vector<std::string> rule_state_names() const override {
    return {"exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq"};
  }
  /// exp_avg_sq_row and exp_avg_sq_col of parameters of two or more dimensions, exp_avg_sq of the
  /// others.
  std::vector<nn::StoredParameter> rule_state() const override;
  void update(std::span<const uint32_t> parameters, const Update& update) override;

  struct Item {
    std::string name;
    Tensor parameter;
    AdafactorState state;
  };
  AdafactorRule rule_;
  std::vector<Item> items_;
};

}  // namespace lockstep::train
