#pragma once

#include <array>
#include <vector>

#include "core/dispatch/call_op.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// A function that calls nearly every element-wise operator of one and of two tensors, each on its
/// arguments: two of f32 and two of int64, all of one size.
inline std::vector<Tensor> every_functor(TensorList in) {
  constexpr std::array kOfOne = {
      "tanh",       "sigmoid",     "relu",         "gelu",          "silu",
      "i0",         "special_i0e", "special_i1",   "special_i1e",   "special_bessel_j0",
      "isnan",      "isfinite",    "isinf",        "special_erfcx", "special_bessel_j1",
      "erfinv",     "sinc",        "special_ndtr", "special_ndtri", "special_log_ndtr",
      "hardswish",  "signbit",     "hardsigmoid",  "special_entr",  "log_sigmoid",
      "mish",       "floor",       "ceil",         "trunc",         "round",
      "frac",       "exp2",        "expm1",        "log1p",         "log2",
      "log10",      "tan",         "asin",         "acos",          "atan",
      "sinh",       "cosh",        "asinh",        "acosh",         "atanh",
      "erf",        "erfc",        "lgamma",       "digamma",       "neg",
      "abs",        "square",      "sign",         "exp",           "log",
      "sqrt",       "rsqrt",       "reciprocal",   "sin",           "cos",
      "logical_not"};
  constexpr std::array kOfTwo = {
      "mul.Tensor",  "div.Tensor", "maximum",           "minimum",   "hypot",
      "atan2",       "logaddexp",  "fmod.Tensor",       "lt.Tensor", "remainder.Tensor",
      "fmax",        "fmin",       "pow.Tensor_Tensor", "heaviside", "copysign.Tensor",
      "logaddexp2",  "nextafter",  "special_xlog1py",   "ge.Tensor", "xlogy.Tensor",
      "logical_and", "eq.Tensor",  "special_zeta"};
  constexpr std::array kOfIntegers = {
      "bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "gcd", "lcm",
      "mul.Tensor",         "maximum",           "ne.Tensor"};
  std::vector<Tensor> results;
  for (const char* const name : kOfOne) results.push_back(call_op(name, {in[0]}));
  for (const char* const name : kOfTwo) results.push_back(call_op(name, {in[0], in[1]}));
  for (const char* const name : kOfIntegers) results.push_back(call_op(name, {in[2], in[3]}));
  return results;
}

}  // namespace lockstep
