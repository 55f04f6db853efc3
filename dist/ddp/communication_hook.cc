#include "dist/ddp/communication_hook.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"

namespace lockstep::dist {

namespace {

bool is_wide(const Tensor& values) { return size_of(values.dtype()) > 2; }

Tensor sum_as(ProcessGroup& group, const Tensor& values, const Tensor& sent) {
  group.all_reduce(sent).wait();
  return sent.is_same(values) ? values : values.copy_(sent);
}

/// Returns the power of two that keeps a sum of `ranks` values within 2^15, half the range of f16;
/// 1 if `largest` is 0 or not finite.
double f16_scale(double largest, int ranks, DType dtype) {
  if (!std::isfinite(largest) || largest == 0) return 1;
  int exponent = 0;
  (void)std::frexp(largest * ranks, &exponent);
  // The scale and its inverse must be normal numbers of the dtype.
  const int most = dtype == DType::kF64 ? 1000 : 126;
  return std::ldexp(1.0, std::clamp(15 - exponent, -most, most));
}

/// Returns one scale for each gradient, the same on all ranks.
std::vector<double> f16_scales(ProcessGroup& group, const GradientBucket& bucket) {
  std::vector<Tensor> norms;
  for (const GradientBucket::Gradient& each : bucket.gradients) {
    const Tensor& values = each.values;
    norms.push_back(values.numel() == 0 ? zeros({}, values.options())
                                        : linalg_vector_norm(values, INFINITY));
  }
  const Tensor largest = stack(norms).to(DType::kF64);
  group.all_reduce(largest, {ReduceOp::kMax}).wait();
  const Tensor here = largest.to(kCPU);
  std::vector<double> scales;
  for (size_t i = 0; i < norms.size(); ++i) {
    scales.push_back(f16_scale(here.data<double>()[i], group.size(), bucket.values.dtype()));
  }
  return scales;
}

Tensor sum_as_f16(ProcessGroup& group, const GradientBucket& bucket) {
  const std::vector<double> scales = f16_scales(group, bucket);
  for (size_t i = 0; i < scales.size(); ++i) mul_(bucket.gradients[i].values, scales[i]);
  (void)sum_as(group, bucket.values, bucket.values.to(DType::kF16));
  for (size_t i = 0; i < scales.size(); ++i) mul_(bucket.gradients[i].values, 1 / scales[i]);
  return bucket.values;
}

}  // namespace

CommunicationHook bf16_compress_hook() {
  return {"bf16_compress", [](ProcessGroup& group, const GradientBucket& bucket) {
            const Tensor& values = bucket.values;
            return sum_as(group, values, is_wide(values) ? values.to(DType::kBF16) : values);
          }};
}

CommunicationHook f16_compress_hook() {
  return {"f16_compress", [](ProcessGroup& group, const GradientBucket& bucket) {
            const Tensor& values = bucket.values;
            return is_wide(values) ? sum_as_f16(group, bucket) : sum_as(group, values, values);
          }};
}

}  // namespace lockstep::dist
