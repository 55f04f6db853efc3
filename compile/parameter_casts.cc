#include "compile/parameter_casts.h"

#include <algorithm>

#include "autograd/autocast.h"
#include "core/dispatch/thread_state.h"
#include "core/ops/factory/factory.h"

namespace lockstep::compiler {

Tensor apart(const Tensor& tensor) {
  Tensor alias = alias_tensor(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset(),
                              tensor.dtype(), false);
  if (tensor.requires_grad()) alias.set_requires_grad();
  return alias;
}

Tensor ParameterCasts::cast(const Tensor& tensor, DType dtype) {
  const auto found = std::ranges::find_if(
      parameters_, [&](const Tensor& parameter) { return parameter.is_same(tensor); });
  if (found == parameters_.end()) return {};
  const auto index = static_cast<size_t>(found - parameters_.begin());
  for (const Given& given : given_) {
    if (given.parameter == index && given.tensor.dtype() == dtype) return given.tensor;
  }
  Tensor given;
  {
    const ThreadStateGuard unseen(ThreadState::capture().without_modes());
    const CastSourceGuard no_source(nullptr);
    given = apart(autocast_cast(tensor, dtype));
  }
  if (!same(given.strides(), tensor.strides())) {
    recorder_.fail("the cast of a parameter has other strides than it");
  }
  recorder_.add_input(given);
  given_.push_back({index, given});
  return given;
}

}  // namespace lockstep::compiler
