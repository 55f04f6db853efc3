#include "launcher/doctor/fast_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "autograd/grad_mode.h"
#include "core/device/slow_paths.h"
#include "core/ops/attention/attention.h"
#include "core/ops/conv/conv.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/fused_linear.h"
#include "core/ops/matmul/matmul.h"
#include "core/tensor/options.h"
#include "core/tensor/stream.h"

namespace lockstep::launcher {

namespace {

using train::Check;
using train::Health;

/// A layer's products as a training step has them: factors of halves, a stream of f32.
void call_products(Device device, DType half) {
  constexpr int64_t kTokens = 128, kWidth = 64, kHidden = 256;
  const auto matrix = [&](int64_t rows, int64_t columns, DType dtype) {
    return zeros({rows, columns}, {dtype, device});
  };
  const auto bias = [&](int64_t count, DType dtype) { return zeros({count}, {dtype, device}); };
  const Tensor input = matrix(kTokens, kWidth, half);
  const Tensor stream = matrix(kTokens, kWidth, DType::kF32);
  const Tensor up = matrix(kHidden, kWidth, half);
  const Tensor down = matrix(kWidth, kHidden, half);
  (void)linear(input, up, bias(kHidden, half));
  const Gelu hidden = linear_gelu(input, up, bias(kHidden, half));
  (void)linear_add(stream, hidden.value, down, bias(kWidth, DType::kF32));
  (void)linear_add(stream, hidden.value, down);
  (void)linear_of_gelu_backward(input, down, hidden.of);
  (void)linear_parameters_backward(input, hidden.value);
}

void call_attention(Device device, DType half) {
  const auto heads = [&](int64_t count) { return zeros({1, count, 128, 64}, {half, device}); };
  for (const int64_t key_heads : {4, 2}) {
    const Tensor query = heads(4), keys = heads(key_heads);
    const auto [out, logsumexp] =
        _scaled_dot_product_flash_attention_for_cpu(query, keys, keys, 0, true);
    (void)_scaled_dot_product_flash_attention_for_cpu_backward(query, query, keys, keys, out,
                                                               logsumexp, 0, true);
  }
}

void call_convolutions(Device device, DType half) {
  for (const DType dtype : {half, DType::kF32}) {
    const Tensor image =
        contiguous(zeros({2, 16, 8, 8}, {dtype, device}), MemoryFormat::kChannelsLast);
    const Tensor weight = zeros({16, 16, 3, 3}, {dtype, device});
    const Tensor map = conv2d(image, weight, {}, {1, 1}, {1, 1});
    (void)convolution_backward(map, image, weight, {}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1,
                               {true, true, false});
  }
}

}  // namespace

std::vector<Check> fast_path_checks(const std::string& name, Device device, DType half) {
  const NoGradGuard no_grad;
  std::map<std::string, int64_t> before;
  for (const SlowPath& path : slow_paths()) before[path.what] = path.calls;
  call_products(device, half);
  call_attention(device, half);
  call_convolutions(device, half);
  current_stream(device).synchronize();

  Check check{name + " fast ways", Health::kOk, "", ""};
  for (const SlowPath& path : slow_paths()) {
    if (path.calls == before[path.what]) continue;
    check.health = Health::kWarn;
    check.found += (check.found.empty() ? "not taken: " : "; ") + path.what;
    check.advice += (check.advice.empty() ? "" : "; ") + path.why;
  }
  if (check.health == Health::kOk) {
    check.found = "products with their biases, gelus and residuals, attention, convolutions";
  } else {
    check.advice += ". What they compute is the same, slower.";
  }
  return {check};
}

}  // namespace lockstep::launcher
