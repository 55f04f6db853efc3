#include "core/ops/forms/attention.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

const Tensor& rotary_embedding_out(const Tensor& out, const Tensor& input, const Tensor& cosine,
                                   const Tensor& sine, bool inverse) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, bool, const Tensor&), "rotary_embedding.out">()(input, cosine, sine, inverse, out);
}

}  // namespace lockstep
