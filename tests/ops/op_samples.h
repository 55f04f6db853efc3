#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/dispatch/value.h"

namespace lockstep {

/// One call of an operator, with at most 64 elements per tensor unless it is a large sample.
struct Sample {
  std::string what;  ///< "broadcast", "0-d", ...
  std::vector<Value> arguments =
      {};  ///< the first ones in schema order, owned; the others are defaults
  std::vector<std::pair<std::string, Value>> named = {};
  /// Why the derivative differs from that of the values, or empty if it does not.
  std::string no_gradcheck = {};

  /// Sets an argument by name.
  template <class T>
  Sample with(std::string name, T value) &&;
  Sample without_gradcheck(std::string reason) &&;
};

/// What the generic tests in tests/ops/ need to know about one operator.
struct OpSamples {
  std::vector<Sample> calls = {};
  /// A call large enough for kernels to split between threads; empty for operators without kernels.
  std::vector<Sample> large = {};
  /// The result depends on the strides of the arguments (as_strided), or strides can make the call
  /// an error (view).
  bool reads_strides = false;
  /// Elements are uninitialized memory (empty).
  bool unspecified_values = false;
  /// Names of arguments that the derivative treats as constants.
  std::vector<std::string> constants = {};
  /// Why first derivatives are not compared with f64 differences, or empty if they are.
  std::string no_gradcheck = {};
  /// Why second derivatives are not compared with f64 differences, or empty if they are.
  std::string no_gradgradcheck = {};
  /// Dtypes that the operator must refuse, and why. It accepts all others of the same kind.
  std::map<DType, std::string> refuses = {};
  /// Dtypes whose results differ from those of wider dtypes, and why.
  std::map<DType, std::string> differs = {};
  /// Why gradients in bfloat16 and float16 are not compared with float64, or empty if they are.
  std::string no_half_gradients = {};
  /// Names of arguments with a fixed dtype.
  std::vector<std::string> fixed_dtype = {};
  /// The first result stays float32 when the arguments are bfloat16 or float16.
  bool wide_result = false;
  /// Names of arguments that stay float32 when the others are bfloat16 or float16.
  std::vector<std::string> statistics = {};
};

/// Samples by operator name; functional forms only.
using SampleTable = std::map<std::string, OpSamples>;

/// Returns the samples of every operator, made on the first call.
const SampleTable& op_samples();

// One function per family of operators in core/ops.
void add_advanced_index_samples(SampleTable& table);
void add_attention_samples(SampleTable& table);
void add_batch_norm_samples(SampleTable& table);
void add_composite_samples(SampleTable& table);
void add_conv_samples(SampleTable& table);
void add_copy_samples(SampleTable& table);
void add_factorize_samples(SampleTable& table);
void add_factory_samples(SampleTable& table);
void add_image_samples(SampleTable& table);
void add_index_samples(SampleTable& table);
void add_linalg_samples(SampleTable& table);
void add_loss_samples(SampleTable& table);
void add_margin_loss_samples(SampleTable& table);
void add_matmul_samples(SampleTable& table);
void add_matrix_function_samples(SampleTable& table);
void add_norm_samples(SampleTable& table);
void add_optimizer_samples(SampleTable& table);
void add_pad_samples(SampleTable& table);
void add_pointwise_samples(SampleTable& table);
void add_pointwise_math_samples(SampleTable& table);
void add_pointwise_piecewise_samples(SampleTable& table);
void add_pool_samples(SampleTable& table);
void add_random_samples(SampleTable& table);
void add_rearrange_samples(SampleTable& table);
void add_recurrent_samples(SampleTable& table);
void add_reduce_samples(SampleTable& table);
void add_scatter_samples(SampleTable& table);
void add_shape_samples(SampleTable& table);
void add_sort_samples(SampleTable& table);
void add_special_samples(SampleTable& table);
void add_view_samples(SampleTable& table);

// Tensors with elements determined by `sizes` and `seed`. Elements are away from 0 and from each
// other, so that finite differences work for functions with kinks.

/// Floats in (-2, 2).
Tensor floats(IntList sizes, int seed = 1, DType dtype = DType::kF32);
/// Floats in (0.5, 2.5).
Tensor positives(IntList sizes, int seed = 1);
/// Applies `f` to each element of a float tensor.
Tensor map_floats(const Tensor& tensor, double (*f)(double));
/// Integers in [low, high).
Tensor integers(IntList sizes, int64_t low, int64_t high, int seed = 1, DType dtype = DType::kI64);
Tensor flags(IntList sizes, int seed = 1);
/// A vector of the given numbers.
Tensor longs(std::vector<int64_t> values);
/// Sizes for large samples, with rows that divide unevenly between threads.
inline Dims large_sizes() { return {67, 1031}; }
/// The same elements with unordered strides, gaps, and a storage offset.
Tensor with_gaps(const Tensor& tensor);

using Tensors = std::vector<Tensor>;
/// An optional argument that a call leaves out.
inline constexpr std::nullopt_t kNone = std::nullopt;
/// The `eps` of normalizations, as a call must give it.
inline constexpr double kEps = 1e-5;

/// Converts an argument: C++ numbers become int, float or bool, Dims int[], text a string, and
/// std::vector<Tensor> a Tensor[].
template <class T>
Value owned_value(T value) {
  if constexpr (std::same_as<T, bool>) {
    return Value(value);
  } else if constexpr (std::integral<T>) {
    return Value(static_cast<int64_t>(value));
  } else if constexpr (std::same_as<T, Dims>) {
    return Value(IntList(value)).own();
  } else if constexpr (std::convertible_to<T, std::string_view>) {
    return Value(std::string_view(value)).own();
  } else {
    return Value(std::move(value));
  }
}

template <class... A>
Sample call(std::string what, A... arguments) {
  Sample sample;
  sample.what = std::move(what);
  (sample.arguments.push_back(owned_value(std::move(arguments))), ...);
  return sample;
}

template <class T>
Sample Sample::with(std::string name, T value) && {
  named.emplace_back(std::move(name), owned_value(std::move(value)));
  return std::move(*this);
}

}  // namespace lockstep
