// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

const Tensor& log_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "log.out">()(self, out);
}
const Tensor& log10_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "log10.out">()(self, out);
}
const Tensor& log10_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "log10_">()(self);
}
const Tensor& log1p_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "log1p.out">()(self, out);
}
const Tensor& log1p_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "log1p_">()(self);
}
const Tensor& log2_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "log2.out">()(self, out);
}
const Tensor& log2_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "log2_">()(self);
}
const Tensor& log_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "log_">()(self);
}
const Tensor& log_sigmoid_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "log_sigmoid.out">()(self, out);
}
const Tensor& logaddexp_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "logaddexp.out">()(self, other, out);
}
const Tensor& logaddexp2_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "logaddexp2.out">()(self, other, out);
}
const Tensor& logical_and_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "logical_and.out">()(self, other, out);
}
const Tensor& logical_and_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "logical_and_">()(self, other);
}
const Tensor& logical_not_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "logical_not.out">()(self, out);
}
const Tensor& logical_not_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "logical_not_">()(self);
}
const Tensor& logical_or_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "logical_or.out">()(self, other, out);
}
const Tensor& logical_or_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "logical_or_">()(self, other);
}
const Tensor& logical_xor_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "logical_xor.out">()(self, other, out);
}
const Tensor& logical_xor_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "logical_xor_">()(self, other);
}
const Tensor& logit_out(const Tensor& out, const Tensor& self, std::optional<double> eps) {
  return form<const Tensor&(const Tensor&, std::optional<double>, const Tensor&), "logit.out">()(self, eps, out);
}
const Tensor& logit_(const Tensor& self, std::optional<double> eps) {
  return form<const Tensor&(const Tensor&, std::optional<double>), "logit_">()(self, eps);
}
const Tensor& lt_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "lt.Scalar_out">()(self, other, out);
}
const Tensor& lt_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "lt.Tensor_out">()(self, other, out);
}
const Tensor& lt_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "lt_.Scalar">()(self, other);
}
const Tensor& lt_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "lt_.Tensor">()(self, other);
}
const Tensor& masked_fill_out(const Tensor& out, const Tensor& self, const Tensor& mask,
                              const Scalar& value) {
  return form<const Tensor&(const Tensor&, const Tensor&, Scalar, const Tensor&), "masked_fill.Scalar_out">()(self, mask, value, out);
}
Tensor max(const Tensor& self, const Tensor& other) {
  return form<Tensor(const Tensor&, const Tensor&), "max.other">()(self, other);
}
const Tensor& max_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "max.out">()(self, other, out);
}
const Tensor& maximum_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "maximum.out">()(self, other, out);
}
Tensor min(const Tensor& self, const Tensor& other) {
  return form<Tensor(const Tensor&, const Tensor&), "min.other">()(self, other);
}
const Tensor& min_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "min.out">()(self, other, out);
}
const Tensor& minimum_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "minimum.out">()(self, other, out);
}
const Tensor& mish_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "mish.out">()(self, out);
}
const Tensor& mish_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "mish_">()(self);
}
const Tensor& mul_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "mul.Scalar_out">()(self, other, out);
}
const Tensor& nan_to_num_out(const Tensor& out, const Tensor& self, std::optional<double> nan,
                             std::optional<double> posinf, std::optional<double> neginf) {
  return form<const Tensor&(const Tensor&, std::optional<double>, std::optional<double>, std::optional<double>, const Tensor&), "nan_to_num.out">()(self, nan, posinf, neginf, out);
}
const Tensor& nan_to_num_(const Tensor& self, std::optional<double> nan,
                          std::optional<double> posinf, std::optional<double> neginf) {
  return form<const Tensor&(const Tensor&, std::optional<double>, std::optional<double>, std::optional<double>), "nan_to_num_">()(self, nan, posinf, neginf);
}
const Tensor& ne_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "ne.Scalar_out">()(self, other, out);
}
const Tensor& ne_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "ne.Tensor_out">()(self, other, out);
}
const Tensor& ne_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "ne_.Scalar">()(self, other);
}
const Tensor& ne_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "ne_.Tensor">()(self, other);
}
const Tensor& neg_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "neg.out">()(self, out);
}
const Tensor& neg_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "neg_">()(self);
}
const Tensor& nextafter_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "nextafter.out">()(self, other, out);
}
const Tensor& nextafter_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "nextafter_">()(self, other);
}
const Tensor& polygamma_out(const Tensor& out, int64_t n, const Tensor& self) {
  return form<const Tensor&(int64_t, const Tensor&, const Tensor&), "polygamma.out">()(n, self, out);
}
const Tensor& polygamma_(const Tensor& self, int64_t n) {
  return form<const Tensor&(const Tensor&, int64_t), "polygamma_">()(self, n);
}
const Tensor& pow_out(const Tensor& out, const Scalar& self, const Tensor& exponent) {
  return form<const Tensor&(Scalar, const Tensor&, const Tensor&), "pow.Scalar_out">()(self, exponent, out);
}
const Tensor& pow_out(const Tensor& out, const Tensor& self, const Scalar& exponent) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "pow.Tensor_Scalar_out">()(self, exponent, out);
}
const Tensor& pow_out(const Tensor& out, const Tensor& self, const Tensor& exponent) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "pow.Tensor_Tensor_out">()(self, exponent, out);
}
const Tensor& pow_(const Tensor& self, const Tensor& exponent) {
  return form<const Tensor&(const Tensor&, const Tensor&), "pow_.Tensor">()(self, exponent);
}
const Tensor& rad2deg_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "rad2deg.out">()(self, out);
}
const Tensor& rad2deg_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "rad2deg_">()(self);
}
const Tensor& reciprocal_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "reciprocal.out">()(self, out);
}
const Tensor& reciprocal_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "reciprocal_">()(self);
}
const Tensor& relu_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "relu.out">()(self, out);
}
const Tensor& relu6_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "relu6_">()(self);
}
const Tensor& remainder_out(const Tensor& out, const Scalar& self, const Tensor& other) {
  return form<const Tensor&(Scalar, const Tensor&, const Tensor&), "remainder.Scalar_Tensor_out">()(self, other, out);
}
const Tensor& remainder_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "remainder.Scalar_out">()(self, other, out);
}
const Tensor& remainder_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "remainder.Tensor_out">()(self, other, out);
}
const Tensor& remainder_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "remainder_.Scalar">()(self, other);
}
const Tensor& remainder_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "remainder_.Tensor">()(self, other);
}
const Tensor& round_out(const Tensor& out, const Tensor& self, int64_t decimals) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&), "round.decimals_out">()(self, decimals, out);
}
const Tensor& round_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "round.out">()(self, out);
}
const Tensor& round_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "round_">()(self);
}
const Tensor& round_(const Tensor& self, int64_t decimals) {
  return form<const Tensor&(const Tensor&, int64_t), "round_.decimals">()(self, decimals);
}
const Tensor& rsqrt_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "rsqrt.out">()(self, out);
}
const Tensor& rsqrt_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "rsqrt_">()(self);
}
const Tensor& rsub_out(const Tensor& out, const Tensor& self, const Scalar& other,
                       const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, Scalar, Scalar, const Tensor&), "rsub.Scalar_out">()(self, other, alpha, out);
}
const Tensor& rsub_out(const Tensor& out, const Tensor& self, const Tensor& other,
                       const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, const Tensor&, Scalar, const Tensor&), "rsub.Tensor_out">()(self, other, alpha, out);
}
const Tensor& selu_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "selu_">()(self);
}
const Tensor& sgn_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "sgn.out">()(self, out);
}
const Tensor& sgn_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "sgn_">()(self);
}
const Tensor& sigmoid_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "sigmoid.out">()(self, out);
}
const Tensor& sigmoid_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "sigmoid_">()(self);
}
const Tensor& sign_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "sign.out">()(self, out);
}
const Tensor& sign_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "sign_">()(self);
}
const Tensor& signbit_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "signbit.out">()(self, out);
}
const Tensor& silu_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "silu.out">()(self, out);
}
const Tensor& silu_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "silu_">()(self);
}
const Tensor& sin_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "sin.out">()(self, out);
}
const Tensor& sin_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "sin_">()(self);
}
const Tensor& sinc_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "sinc.out">()(self, out);
}
const Tensor& sinc_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "sinc_">()(self);
}
const Tensor& sinh_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "sinh.out">()(self, out);
}
const Tensor& sinh_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "sinh_">()(self);
}
const Tensor& softplus_out(const Tensor& out, const Tensor& self, const Scalar& beta,
                           const Scalar& threshold) {
  return form<const Tensor&(const Tensor&, Scalar, Scalar, const Tensor&), "softplus.out">()(self, beta, threshold, out);
}
const Tensor& softshrink_out(const Tensor& out, const Tensor& self, const Scalar& lambd) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "softshrink.out">()(self, lambd, out);
}
const Tensor& special_bessel_j0_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "special_bessel_j0.out">()(self, out);
}
const Tensor& special_bessel_j1_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "special_bessel_j1.out">()(self, out);
}
const Tensor& special_entr_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "special_entr.out">()(self, out);
}
const Tensor& special_erfcx_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "special_erfcx.out">()(self, out);
}
const Tensor& special_i0e_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "special_i0e.out">()(self, out);
}
const Tensor& special_i1_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "special_i1.out">()(self, out);
}
const Tensor& special_i1e_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "special_i1e.out">()(self, out);
}
const Tensor& special_log_ndtr_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "special_log_ndtr.out">()(self, out);
}
const Tensor& special_ndtr_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "special_ndtr.out">()(self, out);
}
const Tensor& special_ndtri_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "special_ndtri.out">()(self, out);
}
Tensor special_xlog1py(const Tensor& self, const Scalar& other) {
  return form<Tensor(const Tensor&, Scalar), "special_xlog1py.other_scalar">()(self, other);
}
const Tensor& special_xlog1py_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "special_xlog1py.other_scalar_out">()(self, other, out);
}
const Tensor& special_xlog1py_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "special_xlog1py.out">()(self, other, out);
}
Tensor special_xlog1py(const Scalar& self, const Tensor& other) {
  return form<Tensor(Scalar, const Tensor&), "special_xlog1py.self_scalar">()(self, other);
}
const Tensor& special_xlog1py_out(const Tensor& out, const Scalar& self, const Tensor& other) {
  return form<const Tensor&(Scalar, const Tensor&, const Tensor&), "special_xlog1py.self_scalar_out">()(self, other, out);
}
Tensor special_zeta(const Tensor& self, const Scalar& other) {
  return form<Tensor(const Tensor&, Scalar), "special_zeta.other_scalar">()(self, other);
}
const Tensor& special_zeta_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "special_zeta.other_scalar_out">()(self, other, out);
}
const Tensor& special_zeta_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "special_zeta.out">()(self, other, out);
}
Tensor special_zeta(const Scalar& self, const Tensor& other) {
  return form<Tensor(Scalar, const Tensor&), "special_zeta.self_scalar">()(self, other);
}
const Tensor& special_zeta_out(const Tensor& out, const Scalar& self, const Tensor& other) {
  return form<const Tensor&(Scalar, const Tensor&, const Tensor&), "special_zeta.self_scalar_out">()(self, other, out);
}
const Tensor& sqrt_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "sqrt.out">()(self, out);
}
const Tensor& sqrt_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "sqrt_">()(self);
}
const Tensor& square_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "square.out">()(self, out);
}
const Tensor& square_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "square_">()(self);
}
const Tensor& sub_out(const Tensor& out, const Tensor& self, const Scalar& other,
                      const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, Scalar, Scalar, const Tensor&), "sub.Scalar_out">()(self, other, alpha, out);
}
const Tensor& swiglu_out(const Tensor& out, const Tensor& gate, const Tensor& up) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "swiglu.out">()(gate, up, out);
}
const Tensor& tan_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "tan.out">()(self, out);
}
const Tensor& tan_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "tan_">()(self);
}
const Tensor& tanh_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "tanh.out">()(self, out);
}
const Tensor& tanh_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "tanh_">()(self);
}
const Tensor& threshold_out(const Tensor& out, const Tensor& self, const Scalar& threshold,
                            const Scalar& value) {
  return form<const Tensor&(const Tensor&, Scalar, Scalar, const Tensor&), "threshold.out">()(self, threshold, value, out);
}
const Tensor& threshold_(const Tensor& self, const Scalar& threshold, const Scalar& value) {
  return form<const Tensor&(const Tensor&, Scalar, Scalar), "threshold_">()(self, threshold, value);
}
Tensor true_divide(const Tensor& self, const Scalar& other) {
  return form<Tensor(const Tensor&, Scalar), "true_divide.Scalar">()(self, other);
}
const Tensor& true_divide_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "true_divide.out">()(self, other, out);
}
const Tensor& true_divide_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "true_divide_.Scalar">()(self, other);
}
const Tensor& true_divide_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "true_divide_.Tensor">()(self, other);
}
const Tensor& trunc_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "trunc.out">()(self, out);
}
const Tensor& trunc_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "trunc_">()(self);
}
Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other) {
  return form<Tensor(const Tensor&, Scalar, Scalar), "where.Scalar">()(condition, self, other);
}
Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other) {
  return form<Tensor(const Tensor&, const Tensor&, Scalar), "where.ScalarOther">()(condition, self, other);
}
Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other) {
  return form<Tensor(const Tensor&, Scalar, const Tensor&), "where.ScalarSelf">()(condition, self, other);
}
const Tensor& where_out(const Tensor& out, const Tensor& condition, const Tensor& self,
                        const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, const Tensor&), "where.self_out">()(condition, self, other, out);
}
const Tensor& xlogy_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "xlogy.OutScalar_Other">()(self, other, out);
}
const Tensor& xlogy_out(const Tensor& out, const Scalar& self, const Tensor& other) {
  return form<const Tensor&(Scalar, const Tensor&, const Tensor&), "xlogy.OutScalar_Self">()(self, other, out);
}
const Tensor& xlogy_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "xlogy.OutTensor">()(self, other, out);
}
Tensor xlogy(const Tensor& self, const Scalar& other) {
  return form<Tensor(const Tensor&, Scalar), "xlogy.Scalar_Other">()(self, other);
}
Tensor xlogy(const Scalar& self, const Tensor& other) {
  return form<Tensor(Scalar, const Tensor&), "xlogy.Scalar_Self">()(self, other);
}
const Tensor& xlogy_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "xlogy_.Scalar_Other">()(self, other);
}
const Tensor& xlogy_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "xlogy_.Tensor">()(self, other);
}

}  // namespace lockstep
