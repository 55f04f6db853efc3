// The C++ of docs/sharding.md.

#include <lockstep/lockstep.h>

#include <memory>

namespace lockstep {
namespace documented {

bool have_samples();
Tensor my_samples();
Tensor loss(const nn::Module& model, const Tensor& samples);

void training(nn::Gpt2& model, std::unique_ptr<dist::ProcessGroup>& group) {
#include "sharding/1.inc"
}

void large_model(const nn::Gpt2Options& options, std::unique_ptr<dist::ProcessGroup>& group) {
#include "sharding/2.inc"
}

}  // namespace documented
}  // namespace lockstep
