// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::addbmm(const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                      const Scalar& alpha) const {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addbmm">()(*this, batch1, batch2, beta, alpha);
}
const Tensor& Tensor::addbmm_(const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                              const Scalar& alpha) const {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addbmm_">()(*this, batch1, batch2, beta, alpha);
}
Tensor Tensor::addmm(const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha) const {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addmm">()(*this, mat1, mat2, beta, alpha);
}
const Tensor& Tensor::addmm_(const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                             const Scalar& alpha) const {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addmm_">()(*this, mat1, mat2, beta, alpha);
}
Tensor Tensor::addmv(const Tensor& mat, const Tensor& vec, const Scalar& beta,
                     const Scalar& alpha) const {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addmv">()(*this, mat, vec, beta, alpha);
}
const Tensor& Tensor::addmv_(const Tensor& mat, const Tensor& vec, const Scalar& beta,
                             const Scalar& alpha) const {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addmv_">()(*this, mat, vec, beta, alpha);
}
Tensor Tensor::addr(const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
                    const Scalar& alpha) const {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addr">()(*this, vec1, vec2, beta, alpha);
}
const Tensor& Tensor::addr_(const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
                            const Scalar& alpha) const {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "addr_">()(*this, vec1, vec2, beta, alpha);
}
Tensor Tensor::baddbmm(const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                       const Scalar& alpha) const {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "baddbmm">()(*this, batch1, batch2, beta, alpha);
}
const Tensor& Tensor::baddbmm_(const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                               const Scalar& alpha) const {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar), "baddbmm_">()(*this, batch1, batch2, beta, alpha);
}
Tensor Tensor::bmm(const Tensor& mat2) const {
  return form<Tensor(const Tensor&, const Tensor&), "bmm">()(*this, mat2);
}
Tensor Tensor::cross(const Tensor& other, std::optional<int64_t> dim) const {
  return form<Tensor(const Tensor&, const Tensor&, std::optional<int64_t>), "cross">()(*this, other, dim);
}
Tensor Tensor::diff(int64_t n, int64_t dim, OptionalTensor prepend, OptionalTensor append) const {
  return form<Tensor(const Tensor&, int64_t, int64_t, OptionalTensor, OptionalTensor), "diff">()(*this, n, dim, prepend, append);
}
Tensor Tensor::dist(const Tensor& other, const Scalar& p) const {
  return form<Tensor(const Tensor&, const Tensor&, Scalar), "dist">()(*this, other, p);
}
Tensor Tensor::dot(const Tensor& tensor) const {
  return form<Tensor(const Tensor&, const Tensor&), "dot">()(*this, tensor);
}
Tensor Tensor::linalg_cross(const Tensor& other, int64_t dim) const {
  return form<Tensor(const Tensor&, const Tensor&, int64_t), "linalg_cross">()(*this, other, dim);
}
Tensor Tensor::matmul(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "matmul">()(*this, other);
}
Tensor Tensor::mm(const Tensor& mat2) const {
  return form<Tensor(const Tensor&, const Tensor&), "mm">()(*this, mat2);
}
Tensor Tensor::mv(const Tensor& vec) const {
  return form<Tensor(const Tensor&, const Tensor&), "mv">()(*this, vec);
}
Tensor Tensor::outer(const Tensor& vec2) const {
  return form<Tensor(const Tensor&, const Tensor&), "outer">()(*this, vec2);
}
Tensor Tensor::pdist(double p) const {
  return form<Tensor(const Tensor&, double), "pdist">()(*this, p);
}
Tensor Tensor::trace() const { return form<Tensor(const Tensor&), "trace">()(*this); }

}  // namespace lockstep
