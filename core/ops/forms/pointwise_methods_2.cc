// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

const Tensor& Tensor::mul_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "mul_.Scalar">()(*this, other);
}
const Tensor& Tensor::mul_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "mul_.Tensor">()(*this, other);
}
Tensor Tensor::nan_to_num(std::optional<double> nan, std::optional<double> posinf,
                          std::optional<double> neginf) const {
  return form<Tensor(const Tensor&, std::optional<double>, std::optional<double>, std::optional<double>), "nan_to_num">()(*this, nan, posinf, neginf);
}
const Tensor& Tensor::nan_to_num_(std::optional<double> nan, std::optional<double> posinf,
                                  std::optional<double> neginf) const {
  return form<const Tensor&(const Tensor&, std::optional<double>, std::optional<double>, std::optional<double>), "nan_to_num_">()(*this, nan, posinf, neginf);
}
Tensor Tensor::ne(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "ne.Scalar">()(*this, other);
}
Tensor Tensor::ne(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "ne.Tensor">()(*this, other);
}
const Tensor& Tensor::ne_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "ne_.Scalar">()(*this, other);
}
const Tensor& Tensor::ne_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "ne_.Tensor">()(*this, other);
}
Tensor Tensor::neg() const { return form<Tensor(const Tensor&), "neg">()(*this); }
const Tensor& Tensor::neg_() const { return form<const Tensor&(const Tensor&), "neg_">()(*this); }
Tensor Tensor::nextafter(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "nextafter">()(*this, other);
}
const Tensor& Tensor::nextafter_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "nextafter_">()(*this, other);
}
const Tensor& Tensor::polygamma_(int64_t n) const {
  return form<const Tensor&(const Tensor&, int64_t), "polygamma_">()(*this, n);
}
Tensor Tensor::positive() const { return form<Tensor(const Tensor&), "positive">()(*this); }
Tensor Tensor::pow(const Scalar& exponent) const {
  return form<Tensor(const Tensor&, Scalar), "pow.Tensor_Scalar">()(*this, exponent);
}
Tensor Tensor::pow(const Tensor& exponent) const {
  return form<Tensor(const Tensor&, const Tensor&), "pow.Tensor_Tensor">()(*this, exponent);
}
const Tensor& Tensor::pow_(const Scalar& exponent) const {
  return form<const Tensor&(const Tensor&, Scalar), "pow_.Scalar">()(*this, exponent);
}
const Tensor& Tensor::pow_(const Tensor& exponent) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "pow_.Tensor">()(*this, exponent);
}
Tensor Tensor::prelu(const Tensor& weight) const {
  return form<Tensor(const Tensor&, const Tensor&), "prelu">()(*this, weight);
}
Tensor Tensor::rad2deg() const { return form<Tensor(const Tensor&), "rad2deg">()(*this); }
const Tensor& Tensor::rad2deg_() const {
  return form<const Tensor&(const Tensor&), "rad2deg_">()(*this);
}
Tensor Tensor::reciprocal() const { return form<Tensor(const Tensor&), "reciprocal">()(*this); }
const Tensor& Tensor::reciprocal_() const {
  return form<const Tensor&(const Tensor&), "reciprocal_">()(*this);
}
Tensor Tensor::relu() const { return form<Tensor(const Tensor&), "relu">()(*this); }
Tensor Tensor::relu6() const { return form<Tensor(const Tensor&), "relu6">()(*this); }
const Tensor& Tensor::relu6_() const {
  return form<const Tensor&(const Tensor&), "relu6_">()(*this);
}
const Tensor& Tensor::relu_() const { return form<const Tensor&(const Tensor&), "relu_">()(*this); }
Tensor Tensor::remainder(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "remainder.Scalar">()(*this, other);
}
Tensor Tensor::remainder(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "remainder.Tensor">()(*this, other);
}
const Tensor& Tensor::remainder_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "remainder_.Scalar">()(*this, other);
}
const Tensor& Tensor::remainder_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "remainder_.Tensor">()(*this, other);
}
Tensor Tensor::round() const { return form<Tensor(const Tensor&), "round">()(*this); }
Tensor Tensor::round(int64_t decimals) const {
  return form<Tensor(const Tensor&, int64_t), "round.decimals">()(*this, decimals);
}
const Tensor& Tensor::round_() const {
  return form<const Tensor&(const Tensor&), "round_">()(*this);
}
const Tensor& Tensor::round_(int64_t decimals) const {
  return form<const Tensor&(const Tensor&, int64_t), "round_.decimals">()(*this, decimals);
}
Tensor Tensor::rsqrt() const { return form<Tensor(const Tensor&), "rsqrt">()(*this); }
const Tensor& Tensor::rsqrt_() const {
  return form<const Tensor&(const Tensor&), "rsqrt_">()(*this);
}
Tensor Tensor::rsub(const Scalar& other, const Scalar& alpha) const {
  return form<Tensor(const Tensor&, Scalar, Scalar), "rsub.Scalar">()(*this, other, alpha);
}
Tensor Tensor::rsub(const Tensor& other, const Scalar& alpha) const {
  return form<Tensor(const Tensor&, const Tensor&, Scalar), "rsub.Tensor">()(*this, other, alpha);
}
Tensor Tensor::selu() const { return form<Tensor(const Tensor&), "selu">()(*this); }
const Tensor& Tensor::selu_() const { return form<const Tensor&(const Tensor&), "selu_">()(*this); }
Tensor Tensor::sgn() const { return form<Tensor(const Tensor&), "sgn">()(*this); }
const Tensor& Tensor::sgn_() const { return form<const Tensor&(const Tensor&), "sgn_">()(*this); }
Tensor Tensor::sigmoid() const { return form<Tensor(const Tensor&), "sigmoid">()(*this); }
const Tensor& Tensor::sigmoid_() const {
  return form<const Tensor&(const Tensor&), "sigmoid_">()(*this);
}
Tensor Tensor::sign() const { return form<Tensor(const Tensor&), "sign">()(*this); }
const Tensor& Tensor::sign_() const { return form<const Tensor&(const Tensor&), "sign_">()(*this); }
Tensor Tensor::signbit() const { return form<Tensor(const Tensor&), "signbit">()(*this); }
Tensor Tensor::silu() const { return form<Tensor(const Tensor&), "silu">()(*this); }
const Tensor& Tensor::silu_() const { return form<const Tensor&(const Tensor&), "silu_">()(*this); }
Tensor Tensor::sin() const { return form<Tensor(const Tensor&), "sin">()(*this); }
const Tensor& Tensor::sin_() const { return form<const Tensor&(const Tensor&), "sin_">()(*this); }
Tensor Tensor::sinc() const { return form<Tensor(const Tensor&), "sinc">()(*this); }
const Tensor& Tensor::sinc_() const { return form<const Tensor&(const Tensor&), "sinc_">()(*this); }
Tensor Tensor::sinh() const { return form<Tensor(const Tensor&), "sinh">()(*this); }
const Tensor& Tensor::sinh_() const { return form<const Tensor&(const Tensor&), "sinh_">()(*this); }
Tensor Tensor::softplus(const Scalar& beta, const Scalar& threshold) const {
  return form<Tensor(const Tensor&, Scalar, Scalar), "softplus">()(*this, beta, threshold);
}
Tensor Tensor::softshrink(const Scalar& lambd) const {
  return form<Tensor(const Tensor&, Scalar), "softshrink">()(*this, lambd);
}
Tensor Tensor::special_bessel_j0() const {
  return form<Tensor(const Tensor&), "special_bessel_j0">()(*this);
}
Tensor Tensor::special_bessel_j1() const {
  return form<Tensor(const Tensor&), "special_bessel_j1">()(*this);
}
Tensor Tensor::special_entr() const { return form<Tensor(const Tensor&), "special_entr">()(*this); }
Tensor Tensor::special_erfcx() const {
  return form<Tensor(const Tensor&), "special_erfcx">()(*this);
}
Tensor Tensor::special_i0e() const { return form<Tensor(const Tensor&), "special_i0e">()(*this); }
Tensor Tensor::special_i1() const { return form<Tensor(const Tensor&), "special_i1">()(*this); }
Tensor Tensor::special_i1e() const { return form<Tensor(const Tensor&), "special_i1e">()(*this); }
Tensor Tensor::special_log_ndtr() const {
  return form<Tensor(const Tensor&), "special_log_ndtr">()(*this);
}
Tensor Tensor::special_ndtr() const { return form<Tensor(const Tensor&), "special_ndtr">()(*this); }
Tensor Tensor::special_ndtri() const {
  return form<Tensor(const Tensor&), "special_ndtri">()(*this);
}
Tensor Tensor::special_xlog1py(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "special_xlog1py">()(*this, other);
}
Tensor Tensor::special_xlog1py(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "special_xlog1py.other_scalar">()(*this, other);
}
Tensor Tensor::special_zeta(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "special_zeta">()(*this, other);
}
Tensor Tensor::special_zeta(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "special_zeta.other_scalar">()(*this, other);
}
Tensor Tensor::sqrt() const { return form<Tensor(const Tensor&), "sqrt">()(*this); }
const Tensor& Tensor::sqrt_() const { return form<const Tensor&(const Tensor&), "sqrt_">()(*this); }
Tensor Tensor::square() const { return form<Tensor(const Tensor&), "square">()(*this); }
const Tensor& Tensor::square_() const {
  return form<const Tensor&(const Tensor&), "square_">()(*this);
}
Tensor Tensor::sub(const Scalar& other, const Scalar& alpha) const {
  return form<Tensor(const Tensor&, Scalar, Scalar), "sub.Scalar">()(*this, other, alpha);
}
Tensor Tensor::sub(const Tensor& other, const Scalar& alpha) const {
  return form<Tensor(const Tensor&, const Tensor&, Scalar), "sub.Tensor">()(*this, other, alpha);
}
const Tensor& Tensor::sub_(const Scalar& other, const Scalar& alpha) const {
  return form<const Tensor&(const Tensor&, Scalar, Scalar), "sub_.Scalar">()(*this, other, alpha);
}
const Tensor& Tensor::sub_(const Tensor& other, const Scalar& alpha) const {
  return form<const Tensor&(const Tensor&, const Tensor&, Scalar), "sub_.Tensor">()(*this, other, alpha);
}
Tensor Tensor::tan() const { return form<Tensor(const Tensor&), "tan">()(*this); }
const Tensor& Tensor::tan_() const { return form<const Tensor&(const Tensor&), "tan_">()(*this); }
Tensor Tensor::tanh() const { return form<Tensor(const Tensor&), "tanh">()(*this); }
const Tensor& Tensor::tanh_() const { return form<const Tensor&(const Tensor&), "tanh_">()(*this); }
Tensor Tensor::threshold(const Scalar& threshold, const Scalar& value) const {
  return form<Tensor(const Tensor&, Scalar, Scalar), "threshold">()(*this, threshold, value);
}
const Tensor& Tensor::threshold_(const Scalar& threshold, const Scalar& value) const {
  return form<const Tensor&(const Tensor&, Scalar, Scalar), "threshold_">()(*this, threshold, value);
}
Tensor Tensor::true_divide(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "true_divide.Scalar">()(*this, other);
}
Tensor Tensor::true_divide(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "true_divide.Tensor">()(*this, other);
}
const Tensor& Tensor::true_divide_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "true_divide_.Scalar">()(*this, other);
}
const Tensor& Tensor::true_divide_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "true_divide_.Tensor">()(*this, other);
}
Tensor Tensor::trunc() const { return form<Tensor(const Tensor&), "trunc">()(*this); }
const Tensor& Tensor::trunc_() const {
  return form<const Tensor&(const Tensor&), "trunc_">()(*this);
}
Tensor Tensor::xlogy(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "xlogy.Scalar_Other">()(*this, other);
}
Tensor Tensor::xlogy(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "xlogy.Tensor">()(*this, other);
}
const Tensor& Tensor::xlogy_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "xlogy_.Scalar_Other">()(*this, other);
}
const Tensor& Tensor::xlogy_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "xlogy_.Tensor">()(*this, other);
}

}  // namespace lockstep
