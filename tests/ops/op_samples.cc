#include "tests/ops/op_samples.h"

#include <algorithm>
#include <numeric>

#include "tests/conformance/elements.h"

namespace lockstep {

namespace {

/// Distinct numbers in [0, 1): a full-period additive sequence modulo `count`.
std::vector<double> spread(int64_t count, int seed) {
  std::vector<double> values(static_cast<size_t>(count));
  // A step near the golden ratio times the count, made coprime, visits every residue once.
  int64_t step = static_cast<int64_t>(0.618 * static_cast<double>(count)) + seed;
  while (count > 0 && std::gcd(step, count) != 1) ++step;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = (i * step + seed) % count;
    const double jitter = 0.3 + 0.4 * static_cast<double>((i * 7 + seed * 13) % 11) / 11.0;
    values[static_cast<size_t>(i)] =
        (static_cast<double>(place) + jitter) / static_cast<double>(count);
  }
  return values;
}

Tensor filled(IntList sizes, DType dtype, int seed, double (*shape)(double)) {
  const Tensor tensor = empty_tensor(sizes, dtype);
  std::vector<double> values = spread(tensor.numel(), seed);
  for (double& value : values) value = shape(value);
  set_elements(tensor, values);
  return tensor;
}

}  // namespace

Tensor floats(IntList sizes, int seed, DType dtype) {
  return filled(sizes, dtype, seed, [](double u) {
    const double x = 3.6 * u - 1.8;
    return x < 0 ? x - 0.1 : x + 0.1;
  });
}

Tensor positives(IntList sizes, int seed) {
  return filled(sizes, DType::kF32, seed, [](double u) { return 0.5 + 2 * u; });
}

Tensor map_floats(const Tensor& tensor, double (*f)(double)) {
  const Tensor result = empty_tensor(tensor.sizes(), tensor.dtype());
  std::vector<double> values = elements_as<double>(tensor);
  for (double& value : values) value = f(value);
  set_elements(result, values);
  return result;
}

Tensor integers(IntList sizes, int64_t low, int64_t high, int seed, DType dtype) {
  const Tensor tensor = empty_tensor(sizes, dtype);
  std::vector<int64_t> values;
  for (double u : spread(tensor.numel(), seed)) {
    values.push_back(low + static_cast<int64_t>(u * static_cast<double>(high - low)));
  }
  set_elements(tensor, values);
  return tensor;
}

Tensor flags(IntList sizes, int seed) { return integers(sizes, 0, 2, seed, DType::kBool); }

Tensor longs(std::vector<int64_t> values) {
  const Tensor tensor = empty_tensor({static_cast<int64_t>(values.size())}, DType::kI64);
  set_elements(tensor, values);
  return tensor;
}

Tensor with_gaps(const Tensor& tensor) {
  Dims strides(tensor.sizes().size());
  int64_t next = 2;  // uses every second element of the first dimension
  for (size_t i = 0; i < strides.size(); ++i) {
    strides[i] = next;
    next *= std::max<int64_t>(tensor.sizes()[i], 1);
  }
  constexpr int64_t kOffset = 3;
  const Tensor room = empty_tensor({kOffset + next}, tensor.dtype());
  set_elements(room, std::vector<int64_t>(static_cast<size_t>(room.numel()), 1));
  const Tensor result =
      alias_tensor(room, to_dims(tensor.sizes()), strides, kOffset, tensor.dtype(), false);
  if (is_floating(tensor.dtype())) {
    set_elements(result, elements_as<double>(tensor));
  } else {
    set_elements(result, elements_as<int64_t>(tensor));
  }
  return result;
}

Sample Sample::without_gradcheck(std::string reason) && {
  no_gradcheck = std::move(reason);
  return std::move(*this);
}

const SampleTable& op_samples() {
  static const SampleTable kTable = [] {
    SampleTable table;
    add_advanced_index_samples(table);
    add_attention_samples(table);
    add_batch_norm_samples(table);
    add_composite_samples(table);
    add_conv_samples(table);
    add_copy_samples(table);
    add_factorize_samples(table);
    add_factory_samples(table);
    add_image_samples(table);
    add_index_samples(table);
    add_linalg_samples(table);
    add_loss_samples(table);
    add_margin_loss_samples(table);
    add_matmul_samples(table);
    add_matrix_function_samples(table);
    add_norm_samples(table);
    add_optimizer_samples(table);
    add_pad_samples(table);
    add_pointwise_samples(table);
    add_pointwise_math_samples(table);
    add_pointwise_piecewise_samples(table);
    add_pool_samples(table);
    add_random_samples(table);
    add_rearrange_samples(table);
    add_recurrent_samples(table);
    add_reduce_samples(table);
    add_scatter_samples(table);
    add_shape_samples(table);
    add_sort_samples(table);
    add_special_samples(table);
    add_view_samples(table);
    return table;
  }();
  return kTable;
}

}  // namespace lockstep
