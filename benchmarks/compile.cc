// Compiled functions beside the same functions as they are, alternately in one process: chains of
// element-wise operators on a large tensor, a norm of rows written in small operators, rows of
// tables with dropout, forward and backward of a small MLP, and training steps of configs.

#include "compile/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "autograd/autograd.h"
#include "benchmarks/figures.h"
#include "benchmarks/null_gpu/null_gpu.h"
#include "configs/run.pb.h"
#include "core/base/parallel.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/loss/loss.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/stream_norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "train/trainer.h"

namespace lockstep {
namespace {

double microseconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Medians of the bodies, each timed once a round; a call of each comes first.
std::vector<double> alternate(int rounds, const std::vector<std::function<void()>>& bodies) {
  std::vector<std::vector<double>> times(bodies.size());
  for (const auto& body : bodies) body();
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < bodies.size(); ++i) times[i].push_back(microseconds(bodies[i]));
  }
  std::vector<double> medians;
  for (const auto& of_one : times) medians.push_back(median(of_one));
  return medians;
}

/// `length` operators: products and sums with numbers, the cheap functions that memory limits.
Tensor chain(const Tensor& x, int length) {
  Tensor y = x;
  for (int i = 0; i < length; ++i) {
    switch (i % 4) {
      case 0:
        y = mul(y, 1.5);
        break;
      case 1:
        y = add(y, 0.25);
        break;
      case 2:
        y = relu(y);
        break;
      case 3:
        y = sub(y, x);
        break;
    }
  }
  return y;
}

/// `body`, compiled with kernels made when that is asked for.
template <class Body>
auto compiled(const Body& body, KernelBuild kernels) {
  CompileOptions options;
  options.kernels = kernels;
  return compile(body, options);
}

void time_chains(int64_t elements, int rounds, nlohmann::ordered_json& figures) {
  const Tensor x = randn({elements});
  const Tensor copy = empty_like(x);
  for (const int length : {2, 5, 10, 20}) {
    const auto body = [length](const Tensor& input) { return chain(input, length); };
    const CompiledTensorFunction loops = compiled(body, KernelBuild::kNever);
    const CompiledTensorFunction kernel = compiled(body, KernelBuild::kAtOnce);
    keep(kernel(x));
    const std::vector<double> times =
        alternate(rounds, {[&] { keep(chain(x, length)); }, [&] { keep(loops(x)); },
                           [&] { keep(kernel(x)); }, [&] { copy_(copy, x); }});
    const std::string name = fmt::format("chain{}", length);
    figures[name + "_eager_us"] = times[0];
    figures[name + "_loops_us"] = times[1];
    figures[name + "_kernel_us"] = times[2];
    figures[name + "_speedup"] = times[0] / times[2];
    figures[name + "_of_a_copy_s_speed"] = times[3] / times[2];
    figures[name + "_kernels"] = kernel.counts().kernels;
  }
}

Tensor norm_by_hand(const Tensor& sum, const Tensor& weight, const Tensor& bias) {
  const Tensor centred = sub(sum, mean(sum, {-1}, true));
  const Tensor variance = mean(mul(centred, centred), {-1}, true);
  return add(mul(mul(centred, rsqrt(add(variance, 1e-5))), weight), bias);
}

/// Residual addition, layer norm and gelu: written in small operators, compiled and as they are,
/// and with the operator that adds and normalises at once.
void time_rows(int64_t elements, int rounds, nlohmann::ordered_json& figures) {
  constexpr int64_t kLength = 768;
  const Tensor x = randn({elements / kLength, kLength}), residual = randn(x.sizes());
  const Tensor weight = randn({kLength}), bias = randn({kLength});
  const auto by_hand = [](TensorList in) {
    const Tensor sum = add(in[0], in[1]);
    return std::vector<Tensor>{sum, gelu(norm_by_hand(sum, in[2], in[3]))};
  };
  const auto fused = [](TensorList in) {
    const auto [norm, sum, average, rstd] =
        stream_sum_norm(in[0], in[1], {kLength}, in[2], in[3], 1e-5, true, std::nullopt);
    return std::vector<Tensor>{sum, gelu(norm)};
  };
  const CompiledFunction loops = compiled(by_hand, KernelBuild::kNever);
  const CompiledFunction kernel = compiled(by_hand, KernelBuild::kAtOnce);
  const std::vector<Tensor> inputs = {x, residual, weight, bias};
  const auto forward = [&](const auto& function) {
    return [&inputs, &function] { keep(function(inputs)[1]); };
  };
  keep(kernel(inputs)[1]);
  const std::vector<double> times =
      alternate(rounds, {forward(by_hand), forward(loops), forward(kernel), forward(fused)});
  figures["norm_eager_us"] = times[0];
  figures["norm_loops_us"] = times[1];
  figures["norm_kernels_us"] = times[2];
  figures["norm_fused_operator_us"] = times[3];
  figures["norm_speedup"] = times[0] / times[2];
  figures["norm_of_the_fused_operator_s_speed"] = times[3] / times[2];
}

/// Rows of two tables, added, scaled and dropped out, as at the beginning of a GPT.
void time_embedding(int64_t elements, int rounds, nlohmann::ordered_json& figures) {
  constexpr int64_t kLength = 768;
  constexpr int64_t kTokens = 4096;
  const Tensor tokens = randn({kTokens, kLength}), places = randn({kTokens, kLength});
  const Tensor numbers = arange(elements / kLength, TensorOptions(DType::kI64));
  const auto embedded = [](TensorList in) {
    const Tensor sum = add(embedding(in[0], in[1]), embedding(in[2], in[3]));
    return std::vector<Tensor>{dropout(mul(sum, 1.5), 0.1, true)};
  };
  const CompiledFunction loops = compiled(embedded, KernelBuild::kNever);
  const CompiledFunction kernel = compiled(embedded, KernelBuild::kAtOnce);
  const std::vector<Tensor> inputs = {tokens, numbers.mul(77).remainder(kTokens), places,
                                      numbers.remainder(kTokens)};
  const auto forward = [&](const auto& function) {
    return [&inputs, &function] { keep(function(inputs)[0]); };
  };
  keep(kernel(inputs)[0]);
  const std::vector<double> times =
      alternate(rounds, {forward(embedded), forward(loops), forward(kernel)});
  figures["embedding_eager_us"] = times[0];
  figures["embedding_loops_us"] = times[1];
  figures["embedding_kernel_us"] = times[2];
  figures["embedding_speedup"] = times[0] / std::min(times[1], times[2]);
}

void time_mlp(int rounds, nlohmann::ordered_json& figures) {
  const std::vector<Tensor> weights = {randn({64, 64}) * 0.1, zeros({64}), randn({64, 64}) * 0.1,
                                       zeros({64})};
  for (const Tensor& weight : weights) weight.set_requires_grad();
  const Tensor input = randn({8, 64});
  const Tensor target = randn({8, 64});
  const auto loss = [&](const Tensor& x) {
    return mse_loss(linear(relu(linear(x, weights[0], weights[1])), weights[2], weights[3]),
                    target);
  };
  const CompiledTensorFunction compiled = compile(loss);
  const std::vector<double> times =
      alternate(rounds, {[&] { keep(grad({loss(input)}, weights)); },
                         [&] { keep(grad({compiled(input)}, weights)); }});
  figures["mlp_eager_us"] = times[0];
  figures["mlp_compiled_us"] = times[1];
}

/// Steps of a config with `field`, "compile.enabled", and without it, in turn.
void time_steps(const std::string& file, const std::vector<std::string>& overrides,
                const std::string& field, int rounds, nlohmann::ordered_json& figures) {
  const auto trainer_of = [&](const char* value) {
    std::vector<std::string> all = overrides;
    all.push_back(fmt::format("{}={}", field, value));
    return train::Trainer::create(launcher::load_config({file}, all));
  };
  train::Trainer eager = trainer_of("false"), compiled = trainer_of("true");
  const auto is_warm = [&](int steps) { return steps >= 2 && !compiled.may_capture(); };
  for (int i = 0; !is_warm(i) && i < 200; ++i) eager.step(), compiled.step();
  std::vector<double> times[2];
  for (int round = 0; round < rounds; ++round) {
    times[0].push_back(microseconds([&] { eager.step(); }));
    times[1].push_back(microseconds([&] { compiled.step(); }));
  }
  const std::string name = std::filesystem::path(file).stem().string();
  figures[name + "_eager_us"] = median(times[0]);
  figures[name + "_compiled_us"] = median(times[1]);
  figures[name + "_eager_least_us"] = std::ranges::min(times[0]);
  figures[name + "_compiled_least_us"] = std::ranges::min(times[1]);
}

}  // namespace

int run(int argc, char** argv) {
  int64_t elements = int64_t{1} << 24;
  int rounds = 11;
  int threads = 0;
  bool json = false;
  launcher::CommandLine line("Compiled functions beside the functions themselves");
  line.option("--elements", elements, "Of the tensor that chains work on").positive();
  line.option("--rounds", rounds, "Times each is run").positive();
  line.option("--threads", threads, "Threads (default: all cores)");
  std::vector<std::string> configs, overrides;
  std::string field = "compile.enabled";
  bool null_gpu = false;
  line.option("--config", configs, "Time training steps of this config, and nothing else")
      .one_value_each();
  line.option("--set", overrides, "Override one field of the configs").one_value_each();
  line.option("--field", field, "Steps of configs are timed with this field true and false")
      .shows_default();
  line.flag("--null-gpu", null_gpu, "Have a cuda:0 that accepts everything and does nothing");
  line.flag("--json", json, "Print an object instead of lines");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (null_gpu) install_null_gpu();
  if (threads > 0) set_num_threads(threads);
  manual_seed(1);
  nlohmann::ordered_json figures;
  for (const std::string& file : configs) time_steps(file, overrides, field, rounds, figures);
  if (configs.empty()) {
    time_chains(elements, rounds, figures);
    time_rows(elements, rounds, figures);
    time_embedding(elements, rounds, figures);
    time_mlp(200 * rounds, figures);
  }
  print_figures(figures, json);
  return 0;
}

}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run(argc, argv); }
