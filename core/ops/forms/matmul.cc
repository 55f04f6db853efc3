#include "core/ops/forms/matmul.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

const Tensor& addbmm_out(const Tensor& out, const Tensor& self, const Tensor& batch1,
                         const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar, const Tensor&), "addbmm.out">()(self, batch1, batch2, beta, alpha, out);
}
const Tensor& addbmm_(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                      const Scalar& beta, const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addbmm_">()(self, batch1, batch2, beta, alpha);
}
const Tensor& addmm_(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addmm_">()(self, mat1, mat2, beta, alpha);
}
const Tensor& addmv_out(const Tensor& out, const Tensor& self, const Tensor& mat, const Tensor& vec,
                        const Scalar& beta, const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar, const Tensor&), "addmv.out">()(self, mat, vec, beta, alpha, out);
}
const Tensor& addmv_(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                     const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addmv_">()(self, mat, vec, beta, alpha);
}
const Tensor& addr_out(const Tensor& out, const Tensor& self, const Tensor& vec1,
                       const Tensor& vec2, const Scalar& beta, const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar, const Tensor&), "addr.out">()(self, vec1, vec2, beta, alpha, out);
}
const Tensor& addr_(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
                    const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addr_">()(self, vec1, vec2, beta, alpha);
}
const Tensor& baddbmm_out(const Tensor& out, const Tensor& self, const Tensor& batch1,
                          const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar, const Tensor&), "baddbmm.out">()(self, batch1, batch2, beta, alpha, out);
}
const Tensor& baddbmm_(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                       const Scalar& beta, const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "baddbmm_">()(self, batch1, batch2, beta, alpha);
}
Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  return form<Tensor(const Tensor&, const Tensor&, double, std::optional<int64_t>), "cdist">()(x1, x2, p, compute_mode);
}
const Tensor& cross_out(const Tensor& out, const Tensor& self, const Tensor& other,
                        std::optional<int64_t> dim) {
  return form<const Tensor&(const Tensor&, const Tensor&, std::optional<int64_t>, const Tensor&), "cross.out">()(self, other, dim, out);
}
const Tensor& diff_out(const Tensor& out, const Tensor& self, int64_t n, int64_t dim,
                       OptionalTensor prepend, OptionalTensor append) {
  return form<const Tensor&(const Tensor&, int64_t, int64_t, OptionalTensor, OptionalTensor, const Tensor&), "diff.out">()(self, n, dim, prepend, append, out);
}
const Tensor& dist_out(const Tensor& out, const Tensor& self, const Tensor& other,
                       const Scalar& p) {
  return form<const Tensor&(const Tensor&, const Tensor&, Scalar, const Tensor&), "dist.out">()(self, other, p, out);
}
const Tensor& dot_out(const Tensor& out, const Tensor& self, const Tensor& tensor) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "dot.out">()(self, tensor, out);
}
const Tensor& linalg_cross_out(const Tensor& out, const Tensor& self, const Tensor& other,
                               int64_t dim) {
  return form<const Tensor&(const Tensor&, const Tensor&, int64_t, const Tensor&), "linalg_cross.out">()(self, other, dim, out);
}
const Tensor& linear_out(const Tensor& out, const Tensor& input, const Tensor& weight,
                         OptionalTensor bias) {
  return form<const Tensor&(const Tensor&, const Tensor&, OptionalTensor, const Tensor&), "linear.out">()(input, weight, bias, out);
}
Tensor linear_of_gelu(const Tensor& value, const Tensor& of, const Tensor& weight,
                      OptionalTensor bias, OptionalTensor residual) {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, OptionalTensor, OptionalTensor), "linear_of_gelu">()(value, of, weight, bias, residual);
}
const Tensor& matmul_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "matmul.out">()(self, other, out);
}
const Tensor& mv_out(const Tensor& out, const Tensor& self, const Tensor& vec) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "mv.out">()(self, vec, out);
}
const Tensor& outer_out(const Tensor& out, const Tensor& self, const Tensor& vec2) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "outer.out">()(self, vec2, out);
}
const Tensor& trace_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "trace.out">()(self, out);
}

}  // namespace lockstep
