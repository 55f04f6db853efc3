#include "core/ops/forms/linalg.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

const Tensor& cholesky_inverse_out(const Tensor& out, const Tensor& self, bool upper) {
  return form<const Tensor&(const Tensor&, bool, const Tensor&), "cholesky_inverse.out">()(self, upper, out);
}
const Tensor& cholesky_solve_out(const Tensor& out, const Tensor& self, const Tensor& input2,
                                 bool upper) {
  return form<const Tensor&(const Tensor&, const Tensor&, bool, const Tensor&), "cholesky_solve.out">()(self, input2, upper, out);
}
Tensor det(const Tensor& self) { return form<Tensor(const Tensor&), "det">()(self); }
const Tensor& inner_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "inner.out">()(self, other, out);
}
Tensor inverse(const Tensor& self) { return form<Tensor(const Tensor&), "inverse">()(self); }
const Tensor& kron_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "kron.out">()(self, other, out);
}
const Tensor& linalg_cholesky_out(const Tensor& out, const Tensor& self, bool upper) {
  return form<const Tensor&(const Tensor&, bool, const Tensor&), "linalg_cholesky.out">()(self, upper, out);
}
std::tuple<Tensor, Tensor> linalg_cholesky_ex_out(const Tensor& L, const Tensor& info,
                                                  const Tensor& self, bool upper,
                                                  bool check_errors) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, bool, bool, const Tensor&, const Tensor&), "linalg_cholesky_ex.L">()(self, upper, check_errors, L, info);
}
const Tensor& linalg_cond_out(const Tensor& out, const Tensor& self, std::optional<Scalar> p) {
  return form<const Tensor&(const Tensor&, std::optional<Scalar>, const Tensor&), "linalg_cond.out">()(self, p, out);
}
const Tensor& linalg_cond_out(const Tensor& out, const Tensor& self, std::string_view p) {
  return form<const Tensor&(const Tensor&, std::string_view, const Tensor&), "linalg_cond.p_str_out">()(self, p, out);
}
const Tensor& linalg_det_out(const Tensor& out, const Tensor& A) {
  return form<const Tensor&(const Tensor&, const Tensor&), "linalg_det.out">()(A, out);
}
std::tuple<Tensor, Tensor> linalg_eigh_out(const Tensor& eigvals, const Tensor& eigvecs,
                                           const Tensor& self, std::string_view UPLO) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::string_view, const Tensor&, const Tensor&), "linalg_eigh.eigvals">()(self, UPLO, eigvals, eigvecs);
}
const Tensor& linalg_eigvalsh_out(const Tensor& out, const Tensor& self, std::string_view UPLO) {
  return form<const Tensor&(const Tensor&, std::string_view, const Tensor&), "linalg_eigvalsh.out">()(self, UPLO, out);
}
const Tensor& linalg_inv_out(const Tensor& out, const Tensor& A) {
  return form<const Tensor&(const Tensor&, const Tensor&), "linalg_inv.out">()(A, out);
}
std::tuple<Tensor, Tensor> linalg_inv_ex_out(const Tensor& inverse, const Tensor& info,
                                             const Tensor& A, bool check_errors) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, bool, const Tensor&, const Tensor&), "linalg_inv_ex.inverse">()(A, check_errors, inverse, info);
}
std::tuple<Tensor, Tensor, Tensor> linalg_lu_out(const Tensor& P, const Tensor& L, const Tensor& U,
                                                 const Tensor& A, bool pivot) {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, bool, const Tensor&, const Tensor&, const Tensor&), "linalg_lu.out">()(A, pivot, P, L, U);
}
std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex_out(const Tensor& LU, const Tensor& pivots,
                                                           const Tensor& info, const Tensor& A,
                                                           bool pivot, bool check_errors) {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, bool, bool, const Tensor&, const Tensor&, const Tensor&), "linalg_lu_factor_ex.out">()(A, pivot, check_errors, LU, pivots, info);
}
const Tensor& linalg_matrix_exp_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "linalg_matrix_exp.out">()(self, out);
}
const Tensor& linalg_matrix_norm_out(const Tensor& out, const Tensor& self, const Scalar& ord,
                                     IntList dim, bool keepdim, std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, Scalar, IntList, bool, std::optional<DType>, const Tensor&), "linalg_matrix_norm.out">()(self, ord, dim, keepdim, dtype, out);
}
const Tensor& linalg_matrix_norm_out(const Tensor& out, const Tensor& self, std::string_view ord,
                                     IntList dim, bool keepdim, std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, std::string_view, IntList, bool, std::optional<DType>, const Tensor&), "linalg_matrix_norm.str_ord_out">()(self, ord, dim, keepdim, dtype, out);
}
const Tensor& linalg_matrix_power_out(const Tensor& out, const Tensor& self, int64_t n) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&), "linalg_matrix_power.out">()(self, n, out);
}
const Tensor& linalg_multi_dot_out(const Tensor& out, TensorList tensors) {
  return form<const Tensor&(TensorList, const Tensor&), "linalg_multi_dot.out">()(tensors, out);
}
std::tuple<Tensor, Tensor> linalg_qr_out(const Tensor& Q, const Tensor& R, const Tensor& A,
                                         std::string_view mode) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::string_view, const Tensor&, const Tensor&), "linalg_qr.out">()(A, mode, Q, R);
}
std::tuple<Tensor, Tensor> linalg_slogdet_out(const Tensor& sign, const Tensor& logabsdet,
                                              const Tensor& A) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&), "linalg_slogdet.out">()(A, sign, logabsdet);
}
const Tensor& linalg_solve_out(const Tensor& out, const Tensor& A, const Tensor& B, bool left) {
  return form<const Tensor&(const Tensor&, const Tensor&, bool, const Tensor&), "linalg_solve.out">()(A, B, left, out);
}
std::tuple<Tensor, Tensor> linalg_solve_ex_out(const Tensor& result, const Tensor& info,
                                               const Tensor& A, const Tensor& B, bool left,
                                               bool check_errors) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, bool, bool, const Tensor&, const Tensor&), "linalg_solve_ex.out">()(A, B, left, check_errors, result, info);
}
const Tensor& linalg_solve_triangular_out(const Tensor& out, const Tensor& self, const Tensor& B,
                                          bool upper, bool left, bool unitriangular) {
  return form<const Tensor&(const Tensor&, const Tensor&, bool, bool, bool, const Tensor&), "linalg_solve_triangular.out">()(self, B, upper, left, unitriangular, out);
}
std::tuple<Tensor, Tensor, Tensor> linalg_svd_out(const Tensor& U, const Tensor& S,
                                                  const Tensor& Vh, const Tensor& A,
                                                  bool full_matrices,
                                                  std::optional<std::string_view> driver) {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, bool, std::optional<std::string_view>, const Tensor&, const Tensor&, const Tensor&), "linalg_svd.U">()(A, full_matrices, driver, U, S, Vh);
}
const Tensor& linalg_svdvals_out(const Tensor& out, const Tensor& A,
                                 std::optional<std::string_view> driver) {
  return form<const Tensor&(const Tensor&, std::optional<std::string_view>, const Tensor&), "linalg_svdvals.out">()(A, driver, out);
}
std::tuple<Tensor, Tensor, Tensor> lu_unpack_out(const Tensor& P, const Tensor& L, const Tensor& U,
                                                 const Tensor& LU_data, const Tensor& LU_pivots,
                                                 bool unpack_data, bool unpack_pivots) {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, bool, bool, const Tensor&, const Tensor&, const Tensor&), "lu_unpack.out">()(LU_data, LU_pivots, unpack_data, unpack_pivots, P, L, U);
}
const Tensor& mvlgamma_out(const Tensor& out, const Tensor& self, int64_t p) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&), "mvlgamma.out">()(self, p, out);
}
const Tensor& mvlgamma_(const Tensor& self, int64_t p) {
  return form<const Tensor&(const Tensor&, int64_t), "mvlgamma_">()(self, p);
}
std::tuple<Tensor, Tensor> triangular_solve_out(const Tensor& X, const Tensor& M,
                                                const Tensor& self, const Tensor& A, bool upper,
                                                bool transpose, bool unitriangular) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, bool, bool, bool, const Tensor&, const Tensor&), "triangular_solve.X">()(self, A, upper, transpose, unitriangular, X, M);
}
const Tensor& vdot_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "vdot.out">()(self, other, out);
}

}  // namespace lockstep
