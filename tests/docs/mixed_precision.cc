// The C++ of docs/mixed_precision.md.

#include <lockstep/lockstep.h>

namespace lockstep {
namespace documented {

struct Model {
  Tensor forward(const Tensor& batch) const;
};
Tensor exact(const Tensor& batch);

void autocast(const Model& model, const Tensor& batch, Tensor& loss, Tensor& check) {
#include "mixed_precision/1.inc"
}

void scaling(train::GradScaler& scaler, train::Optimizer& optimizer, const Tensor& loss,
             const std::vector<Tensor>& gradients, double learning_rate) {
#include "mixed_precision/2.inc"
}

void scaling_of_ones_own(optim::GradScaler& scaler, optim::Optimizer& optimizer,
                         const std::vector<std::pair<Tensor, Tensor>>& batches,
                         Tensor (*loss_of)(const Tensor& samples, const Tensor& labels)) {
#include "mixed_precision/3.inc"
}

}  // namespace documented
}  // namespace lockstep
