#include "launcher/bench/bench_matmul.h"

#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/base/json_line.h"
#include "core/device/device_runtime.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/random/random.h"
#include "launcher/command_line.h"
#include "profile/call_time.h"

namespace lockstep::launcher {

namespace {

struct Options {
  std::string device = "cpu";
  int64_t tokens = 8192;
  int64_t width = 768;
  int64_t vocabulary = 50304;
  int64_t side = 8192;
  double seconds = 0.2;
  bool json = false;
};

/// Which factors are transposed in memory: the second in a linear layer's forward (kNT), none in
/// the gradient of its input (kNN), the first in the gradient of its weight (kTN).
enum class Layout : uint8_t { kNN, kNT, kTN };

const char* name(Layout layout) {
  switch (layout) {
    case Layout::kNN:
      return "nn";
    case Layout::kNT:
      return "nt";
    case Layout::kTN:
      return "tn";
  }
  return "";
}

/// A matrix product, [m, k] times [k, n].
struct Product {
  int64_t m, k, n;
  Layout layout;
};

std::vector<Product> products(const Options& options) {
  std::vector<Product> all;
  const auto add_layer = [&](int64_t in, int64_t out) {
    all.push_back({options.tokens, in, out, Layout::kNT});
    all.push_back({options.tokens, out, in, Layout::kNN});
    all.push_back({out, options.tokens, in, Layout::kTN});
  };
  const int64_t width = options.width;
  add_layer(width, 3 * width);
  add_layer(width, width);
  add_layer(width, 4 * width);
  add_layer(4 * width, width);
  add_layer(width, options.vocabulary);
  for (int64_t side = options.side; side >= std::max<int64_t>(options.side / 8, 1); side /= 2) {
    all.push_back({side, side, side, Layout::kNN});
  }
  return all;
}

double seconds_of(const Product& one, DType dtype, Device device, double seconds) {
  const TensorOptions options{dtype, device};
  const Tensor a = one.layout == Layout::kTN ? randn({one.k, one.m}, options).t()
                                             : randn({one.m, one.k}, options);
  const Tensor b = one.layout == Layout::kNT ? randn({one.n, one.k}, options).t()
                                             : randn({one.k, one.n}, options);
  return profile::call_seconds(device, seconds, [&] { (void)mm(a, b); });
}

void run_matmul(const Options& options) {
  const NoGradGuard no_grad;
  const Device device = parse_device(options.device);
  (void)find_runtime(device);  // throws if there is no such device
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const Product& one : products(options)) {
      const double seconds = seconds_of(one, dtype, device, options.seconds);
      const double flops = 2.0 * static_cast<double>(one.m) * static_cast<double>(one.k * one.n);
      if (options.json) {
        fmt::print("{}\n", JsonLine()
                               .add("m", one.m)
                               .add("k", one.k)
                               .add("n", one.n)
                               .add("layout", name(one.layout))
                               .add("dtype", lockstep::name(dtype))
                               .add("us", seconds * 1e6)
                               .add("tflop_per_s", flops / seconds / 1e12)
                               .text());
      } else {
        fmt::print("{:>6} {:>6} {:>6} {} {:<8} {:>11.1f} us {:>8.2f} TFLOP/s\n", one.m, one.k,
                   one.n, name(one.layout), lockstep::name(dtype), seconds * 1e6,
                   flops / seconds / 1e12);
      }
      std::fflush(stdout);
    }
  }
}

}  // namespace

void add_bench_matmul(const Verb& bench) {
  auto options = std::make_shared<Options>();
  const Verb verb = bench.verb("matmul", "Time the matrix products of GPT-2's layers");
  const auto size = [&](const char* flag, int64_t& value, const std::string& text) {
    verb.option(flag, value, fmt::format("{} (default {})", text, value)).between(1, 1 << 20);
  };
  verb.option("--device", options->device, "Device (default cpu)");
  size("--tokens", options->tokens, "Rows of activations");
  size("--width", options->width, "Of the model");
  size("--vocabulary", options->vocabulary, "Of the model");
  size("--side", options->side, "Of the largest square product; then halves, down to an eighth");
  verb.option("--seconds", options->seconds, "For each product (default 0.2)").not_negative();
  verb.flag("--json", options->json, "A JSON object for each instead of a line of text");
  verb.runs([options] { run_matmul(*options); });
}

}  // namespace lockstep::launcher
