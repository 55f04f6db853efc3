#include "launcher/bench/bench_kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "core/base/json_line.h"
#include "core/device/device_runtime.h"
#include "core/ops/attention/attention.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/loss/loss.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/norm.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "launcher/command_line.h"
#include "profile/call_time.h"

namespace lockstep::launcher {

namespace {

struct Options {
  std::string device = "cpu";
  int64_t elements = int64_t{1} << 26;
  int64_t side = 4096;
  double seconds = 0.2;
  bool compiled = false;
  bool json = false;
};

/// A call of an operator and the minimum of bytes and operations that it must do.
struct Case {
  std::string name;
  std::function<void()> call;
  double bytes = 0;
  double flops = 0;
};

/// Adds memory-bound operators on `elements` elements, which read or write each tensor once.
void add_passes(std::vector<Case>& cases, const TensorOptions& options, int64_t elements) {
  constexpr int64_t kWidth = 1024;
  const int64_t rows = std::max<int64_t>(elements / kWidth, 1);
  const Tensor x = randn({rows, kWidth}, options);
  const Tensor y = randn({rows, kWidth}, options);
  const Tensor weight = ones({kWidth}, options);
  const double one = static_cast<double>(x.nbytes());
  const Tensor transposed = y.view({kWidth, rows}).t();
  cases.push_back({"copy", [x, y] { y.copy_(x); }, 2 * one});
  cases.push_back({"copy of a transpose", [x, transposed] { x.copy_(transposed); }, 2 * one});
  cases.push_back({"add", [x, y] { (void)add(x, y); }, 3 * one});
  cases.push_back({"add to rows", [x, weight] { (void)add(x, weight); }, 2 * one});
  cases.push_back({"gelu", [x] { (void)gelu(x, "tanh"); }, 2 * one});
  cases.push_back({"gelu_backward", [x, y] { (void)gelu_backward(x, y, "tanh"); }, 3 * one});
  cases.push_back({"dropout", [x] { (void)dropout(x, 0.1, true); }, 2 * one});
  cases.push_back({"sum", [x] { (void)sum(x); }, one});
  cases.push_back({"sum over columns", [x] { (void)sum(x, {0}); }, one});
  cases.push_back({"softmax", [x] { (void)softmax(x, -1); }, 2 * one});
  cases.push_back({"softmax_backward",
                   [x, y, dtype = options.dtype] { (void)softmax_backward_data(x, y, -1, *dtype); },
                   3 * one});
  cases.push_back(
      {"layer_norm", [x, weight] { (void)layer_norm(x, {kWidth}, weight, weight); }, 2 * one});
  const auto [normal, mean, rstd] = native_layer_norm(x, {kWidth}, weight, weight, 1e-5);
  cases.push_back(
      {"layer_norm_backward",
       [x, y, weight, mean = mean, rstd = rstd] {
         native_layer_norm_backward(y, x, {kWidth}, mean, rstd, weight, weight, {true, true, true});
       },
       3 * one});
  TensorOptions integers = options;
  integers.dtype = DType::kI64;
  const Tensor indices = randint(0, rows, {rows}, integers);
  cases.push_back({"embedding", [x, indices] { (void)embedding(x, indices); }, 2 * one});
  const Tensor targets = randint(0, kWidth, {rows}, integers);
  cases.push_back({"cross_entropy", [x, targets] { (void)cross_entropy_loss(x, targets); }, one});
  if (options.dtype != DType::kF32) return;
  // `elements` in total: a quarter each for parameters, gradients and the two moments.
  const int64_t quarter = std::max<int64_t>(elements / 4, 1);
  const Tensor moments = zeros({2, quarter}, options);
  const Tensor step = ones({}, {DType::kF64, moments.device()});
  const Tensor values = x.view({-1}).slice(0, 0, quarter);
  const Tensor gradients = y.view({-1}).slice(0, 0, quarter);
  cases.push_back({"adamw",
                   [values, gradients, moments, step] {
                     _fused_adamw_({values}, {gradients}, {moments.select(0, 0)},
                                   {moments.select(0, 1)}, 1e-5, 0.9, 0.95, 0.1, 1e-8, step);
                   },
                   7.0 / 4.0 * one});
}

void add_products(std::vector<Case>& cases, const TensorOptions& options, int64_t side) {
  const Tensor a = randn({side, side}, options);
  const Tensor b = randn({side, side}, options);
  const double flops = 2.0 * static_cast<double>(side) * static_cast<double>(side * side);
  cases.push_back({"mm", [a, b] { (void)mm(a, b); }, 3.0 * static_cast<double>(a.nbytes()), flops});
  cases.push_back({"mm, second transposed", [a, b] { (void)mm(a, b.t()); },
                   3.0 * static_cast<double>(a.nbytes()), flops});
  // Attention of a GPT-2 layer: heads of 64, sequences of 1024 at the default size.
  const int64_t length = std::max<int64_t>(side / 4, 1);
  const Tensor q = randn({8, 12, length, 64}, options);
  const double pairs = 8.0 * 12.0 * static_cast<double>(length) * static_cast<double>(length);
  cases.push_back(
      {"causal attention",
       [q] { (void)scaled_dot_product_attention(q, q, q, {}, 0.0, /*is_causal=*/true); },
       4.0 * static_cast<double>(q.nbytes()), 2.0 * 64.0 * pairs});
}

/// Adds functions of several operators, as they are and compiled with kernels, and the bytes that
/// one pass over memory moves.
void add_functions(std::vector<Case>& cases, const TensorOptions& options, int64_t elements) {
  constexpr int64_t kWidth = 1024;
  const int64_t rows = std::max<int64_t>(elements / kWidth, 2);
  const std::vector<Tensor> inputs = {randn({rows, kWidth}, options),
                                      randn({rows, kWidth}, options), randn({kWidth}, options),
                                      randn({kWidth}, options)};
  const double one = static_cast<double>(inputs[0].nbytes());
  using Function = std::function<std::vector<Tensor>(TensorList)>;
  const auto add_both = [&](const std::string& name, double bytes, const Function& function) {
    const CompiledFunction compiled = compile(function, {.kernels = KernelBuild::kAtOnce});
    (void)compiled(inputs);
    cases.push_back({name, [inputs, function] { (void)function(inputs); }, bytes});
    cases.push_back({name + ", compiled", [inputs, compiled] { (void)compiled(inputs); }, bytes});
  };
  add_both("chain of 5", 2 * one, [](TensorList in) {
    return std::vector<Tensor>{in[0].mul(1.5).add(0.25).relu().sub(in[0]).mul(0.5)};
  });
  add_both("scaled softmax", 2 * one,
           [](TensorList in) { return std::vector<Tensor>{softmax(in[0].mul(0.125), -1)}; });
  add_both("norm of sum", 4 * one, [](TensorList in) {
    const Tensor sum = in[0].add(in[1]);
    const Tensor centred = sum.sub(sum.mean({-1}, true));
    const Tensor variance = centred.mul(centred).mean({-1}, true);
    return std::vector<Tensor>{sum,
                               gelu(centred.mul(rsqrt(variance.add(1e-5))).mul(in[2]).add(in[3]))};
  });
}

void show(const Options& options, const Case& one, DType dtype, double seconds, int64_t fallbacks) {
  const double gb_per_s = one.bytes / seconds / 1e9;
  const double tflops = one.flops / seconds / 1e12;
  if (options.json) {
    JsonLine line;
    line.add("operator", one.name)
        .add("dtype", std::string(name(dtype)))
        .add("us", seconds * 1e6)
        .add("gb_per_s", gb_per_s)
        .add("tflop_per_s", tflops)
        .add("calls_on_cpu", fallbacks);
    fmt::print("{}\n", line.text());
    std::fflush(stdout);
    return;
  }
  fmt::print("{:<25} {:<8} {:>11.1f} us {:>8.1f} GB/s", one.name, name(dtype), seconds * 1e6,
             gb_per_s);
  if (one.flops > 0) fmt::print(" {:>8.2f} TFLOP/s", tflops);
  if (fallbacks > 0) fmt::print("  (ran on the cpu)");
  fmt::print("\n");
  std::fflush(stdout);
}

void run_kernels(const Options& options) {
  const Device device = parse_device(options.device);
  (void)find_runtime(device);  // throws if there is no such device
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    std::vector<Case> cases;
    if (options.compiled) {
      add_functions(cases, {dtype, device}, options.elements);
    } else {
      add_passes(cases, {dtype, device}, options.elements);
      add_products(cases, {dtype, device}, options.side);
    }
    for (const Case& one : cases) {
      const int64_t before = profile::all_cpu_fallbacks();
      const double seconds = profile::call_seconds(device, options.seconds, one.call);
      show(options, one, dtype, seconds, profile::all_cpu_fallbacks() - before);
    }
  }
}

}  // namespace

void add_bench_kernels(const Verb& bench) {
  auto options = std::make_shared<Options>();
  const Verb verb =
      bench.verb("kernels", "Time single operators: bandwidth and operations a second");
  verb.option("--device", options->device, "Device (default cpu)");
  verb.option("--elements", options->elements,
              "Elements of the tensors that are passed over (default 67108864)")
      .between(int64_t{1}, int64_t{1} << 32);
  verb.option("--side", options->side, "Rows and columns of factors (default 4096)")
      .between(1, 1 << 16);
  verb.option("--seconds", options->seconds, "For each operator (default 0.2)").not_negative();
  verb.flag("--compiled", options->compiled,
            "Functions of several operators, as they are and compiled with kernels, instead");
  verb.flag("--json", options->json, "A JSON object for each instead of a line of text");
  verb.runs([options] { run_kernels(*options); });
}

}  // namespace lockstep::launcher
