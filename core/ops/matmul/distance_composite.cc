// Distances between tensors, composed of norms; declared in distance.h.

#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/matmul/distance.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

LS_OP(dist, Tensor(const Tensor&, const Tensor&, Scalar),
      "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")
    .doc("The p-norm of the difference of two tensors.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& other, Scalar p) {
      return linalg_vector_norm(self - other, p);
    });
Tensor distance(const Tensor& self, const Tensor& other, const Scalar& p) {
  return op_dist(self, other, p);
}

LS_OP(dist_out, const Tensor&(const Tensor&, const Tensor&, Scalar, const Tensor&),
      "dist.out(Tensor self, Tensor other, Scalar p=2, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("dist, written into out.")
    .composite([](const Tensor& self, const Tensor& other, Scalar p,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_dist(self, other, p));
    });

LS_OP(pairwise_distance, Tensor(const Tensor&, const Tensor&, double, double, bool),
      "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> "
      "Tensor")
    .doc("p-norms of x1 - x2 + eps along the last dimension.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
      return linalg_vector_norm(x1 - x2 + Scalar(eps), p, {-1}, keepdim);
    });
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  return op_pairwise_distance(x1, x2, p, eps, keepdim);
}

}  // namespace lockstep
