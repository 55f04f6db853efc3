#pragma once

#include "nn/module.h"

namespace lockstep::train {

/// Sets a model's evaluation mode, and at its own end, also after an exception, the mode before.
class Evaluating {
 public:
  explicit Evaluating(nn::Module& model) : model_(model), was_training_(model.is_training()) {
    model.eval();
  }
  ~Evaluating() { model_.train(was_training_); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  nn::Module& model_;
  bool was_training_;
};

}  // namespace lockstep::train
