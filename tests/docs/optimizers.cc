// The C++ of docs/optimizers.md.

#include <lockstep/lockstep.h>

#include <utility>

namespace lockstep {
namespace documented {

std::pair<Tensor, Tensor> next_batch();
Tensor f(const Tensor& x);

void loop() {
#include "optimizers/1.inc"
}

void groups(const nn::Module& body, const Tensor& head_weight, const Tensor& head_bias) {
#include "optimizers/2.inc"
}

void closure(const Tensor& x) {
#include "optimizers/3.inc"
}

void warmup_and_decay(optim::Optimizer& optimizer) {
#include "optimizers/4.inc"
}

void resuming(optim::Optimizer& optimizer, optim::Scheduler& schedule) {
#include "optimizers/5.inc"
}

}  // namespace documented
}  // namespace lockstep
