// The C++ of docs/vmap.md.

#include <lockstep/lockstep.h>

#include "core/ops/batching.h"

namespace lockstep {
namespace documented {

Tensor f(const Tensor& x);

void per_sample(const Tensor& w, const Tensor& x, const Tensor& xs, const Tensor& identity) {
#include "vmap/1.inc"
}

}  // namespace documented

namespace batching {

int64_t shifted(const BatchedCall& call, int64_t dim, int64_t rank);

#include "vmap/2.inc"

}  // namespace batching
}  // namespace lockstep
