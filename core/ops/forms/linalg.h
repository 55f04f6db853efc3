#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

const Tensor& cholesky_inverse_out(const Tensor& out, const Tensor& self, bool upper = false);
const Tensor& cholesky_solve_out(const Tensor& out, const Tensor& self, const Tensor& input2,
                                 bool upper = false);
/// linalg_det under its older name.
Tensor det(const Tensor& self);
const Tensor& inner_out(const Tensor& out, const Tensor& self, const Tensor& other);
/// linalg_inv under its older name.
Tensor inverse(const Tensor& self);
const Tensor& kron_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& linalg_cholesky_out(const Tensor& out, const Tensor& self, bool upper = false);
std::tuple<Tensor, Tensor> linalg_cholesky_ex_out(const Tensor& L, const Tensor& info,
                                                  const Tensor& self, bool upper = false,
                                                  bool check_errors = false);
const Tensor& linalg_cond_out(const Tensor& out, const Tensor& self,
                              std::optional<Scalar> p = std::nullopt);
const Tensor& linalg_cond_out(const Tensor& out, const Tensor& self, std::string_view p);
const Tensor& linalg_det_out(const Tensor& out, const Tensor& A);
std::tuple<Tensor, Tensor> linalg_eigh_out(const Tensor& eigvals, const Tensor& eigvecs,
                                           const Tensor& self, std::string_view UPLO = "L");
const Tensor& linalg_eigvalsh_out(const Tensor& out, const Tensor& self,
                                  std::string_view UPLO = "L");
const Tensor& linalg_inv_out(const Tensor& out, const Tensor& A);
std::tuple<Tensor, Tensor> linalg_inv_ex_out(const Tensor& inverse, const Tensor& info,
                                             const Tensor& A, bool check_errors = false);
std::tuple<Tensor, Tensor, Tensor> linalg_lu_out(const Tensor& P, const Tensor& L, const Tensor& U,
                                                 const Tensor& A, bool pivot = true);
std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex_out(const Tensor& LU, const Tensor& pivots,
                                                           const Tensor& info, const Tensor& A,
                                                           bool pivot = true,
                                                           bool check_errors = false);
const Tensor& linalg_matrix_exp_out(const Tensor& out, const Tensor& self);
const Tensor& linalg_matrix_norm_out(const Tensor& out, const Tensor& self, const Scalar& ord,
                                     IntList dim = {-2, -1}, bool keepdim = false,
                                     std::optional<DType> dtype = std::nullopt);
const Tensor& linalg_matrix_norm_out(const Tensor& out, const Tensor& self,
                                     std::string_view ord = "fro", IntList dim = {-2, -1},
                                     bool keepdim = false,
                                     std::optional<DType> dtype = std::nullopt);
const Tensor& linalg_matrix_power_out(const Tensor& out, const Tensor& self, int64_t n);
const Tensor& linalg_multi_dot_out(const Tensor& out, TensorList tensors);
std::tuple<Tensor, Tensor> linalg_qr_out(const Tensor& Q, const Tensor& R, const Tensor& A,
                                         std::string_view mode = "reduced");
std::tuple<Tensor, Tensor> linalg_slogdet_out(const Tensor& sign, const Tensor& logabsdet,
                                              const Tensor& A);
const Tensor& linalg_solve_out(const Tensor& out, const Tensor& A, const Tensor& B,
                               bool left = true);
std::tuple<Tensor, Tensor> linalg_solve_ex_out(const Tensor& result, const Tensor& info,
                                               const Tensor& A, const Tensor& B, bool left = true,
                                               bool check_errors = false);
const Tensor& linalg_solve_triangular_out(const Tensor& out, const Tensor& self, const Tensor& B,
                                          bool upper, bool left = true, bool unitriangular = false);
std::tuple<Tensor, Tensor, Tensor> linalg_svd_out(const Tensor& U, const Tensor& S,
                                                  const Tensor& Vh, const Tensor& A,
                                                  bool full_matrices = true,
                                                  std::optional<std::string_view> driver = std::nullopt);
const Tensor& linalg_svdvals_out(const Tensor& out, const Tensor& A,
                                 std::optional<std::string_view> driver = std::nullopt);
std::tuple<Tensor, Tensor, Tensor> lu_unpack_out(const Tensor& P, const Tensor& L, const Tensor& U,
                                                 const Tensor& LU_data, const Tensor& LU_pivots,
                                                 bool unpack_data = true,
                                                 bool unpack_pivots = true);
const Tensor& mvlgamma_out(const Tensor& out, const Tensor& self, int64_t p);
const Tensor& mvlgamma_(const Tensor& self, int64_t p);
std::tuple<Tensor, Tensor> triangular_solve_out(const Tensor& X, const Tensor& M,
                                                const Tensor& self, const Tensor& A,
                                                bool upper = true, bool transpose = false,
                                                bool unitriangular = false);
const Tensor& vdot_out(const Tensor& out, const Tensor& self, const Tensor& other);

}  // namespace lockstep
