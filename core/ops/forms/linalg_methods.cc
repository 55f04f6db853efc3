// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::cholesky_inverse(bool upper) const {
  return form<Tensor(const Tensor&, bool), "cholesky_inverse">()(*this, upper);
}
Tensor Tensor::cholesky_solve(const Tensor& input2, bool upper) const {
  return form<Tensor(const Tensor&, const Tensor&, bool), "cholesky_solve">()(*this, input2, upper);
}
Tensor Tensor::corrcoef() const { return form<Tensor(const Tensor&), "corrcoef">()(*this); }
Tensor Tensor::cov(int64_t correction, OptionalTensor fweights, OptionalTensor aweights) const {
  return form<Tensor(const Tensor&, int64_t, OptionalTensor, OptionalTensor), "cov">()(*this, correction, fweights, aweights);
}
Tensor Tensor::det() const { return form<Tensor(const Tensor&), "det">()(*this); }
Tensor Tensor::inner(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "inner">()(*this, other);
}
Tensor Tensor::inverse() const { return form<Tensor(const Tensor&), "inverse">()(*this); }
Tensor Tensor::kron(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "kron">()(*this, other);
}
Tensor Tensor::linalg_cholesky(bool upper) const {
  return form<Tensor(const Tensor&, bool), "linalg_cholesky">()(*this, upper);
}
std::tuple<Tensor, Tensor> Tensor::linalg_cholesky_ex(bool upper, bool check_errors) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, bool, bool), "linalg_cholesky_ex">()(*this, upper, check_errors);
}
Tensor Tensor::linalg_cond(std::optional<Scalar> p) const {
  return form<Tensor(const Tensor&, std::optional<Scalar>), "linalg_cond">()(*this, p);
}
Tensor Tensor::linalg_cond(std::string_view p) const {
  return form<Tensor(const Tensor&, std::string_view), "linalg_cond.p_str">()(*this, p);
}
std::tuple<Tensor, Tensor> Tensor::linalg_eigh(std::string_view UPLO) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::string_view), "linalg_eigh">()(*this, UPLO);
}
Tensor Tensor::linalg_eigvalsh(std::string_view UPLO) const {
  return form<Tensor(const Tensor&, std::string_view), "linalg_eigvalsh">()(*this, UPLO);
}
Tensor Tensor::linalg_matrix_exp() const {
  return form<Tensor(const Tensor&), "linalg_matrix_exp">()(*this);
}
Tensor Tensor::linalg_matrix_norm(const Scalar& ord, IntList dim, bool keepdim,
                                  std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, Scalar, IntList, bool, std::optional<DType>), "linalg_matrix_norm">()(*this, ord, dim, keepdim, dtype);
}
Tensor Tensor::linalg_matrix_norm(std::string_view ord, IntList dim, bool keepdim,
                                  std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, std::string_view, IntList, bool, std::optional<DType>), "linalg_matrix_norm.str_ord">()(*this, ord, dim, keepdim, dtype);
}
Tensor Tensor::linalg_matrix_power(int64_t n) const {
  return form<Tensor(const Tensor&, int64_t), "linalg_matrix_power">()(*this, n);
}
Tensor Tensor::linalg_solve_triangular(const Tensor& B, bool upper, bool left,
                                       bool unitriangular) const {
  return form<Tensor(const Tensor&, const Tensor&, bool, bool, bool), "linalg_solve_triangular">()(*this, B, upper, left, unitriangular);
}
Tensor Tensor::logdet() const { return form<Tensor(const Tensor&), "logdet">()(*this); }
Tensor Tensor::mvlgamma(int64_t p) const {
  return form<Tensor(const Tensor&, int64_t), "mvlgamma">()(*this, p);
}
const Tensor& Tensor::mvlgamma_(int64_t p) const {
  return form<const Tensor&(const Tensor&, int64_t), "mvlgamma_">()(*this, p);
}
std::tuple<Tensor, Tensor> Tensor::triangular_solve(const Tensor& A, bool upper, bool transpose,
                                                    bool unitriangular) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, bool, bool, bool), "triangular_solve">()(*this, A, upper, transpose, unitriangular);
}
Tensor Tensor::vdot(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "vdot">()(*this, other);
}

}  // namespace lockstep
