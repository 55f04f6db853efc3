// Per-sample gradients of a small classifier: by vmap in one call, and by a loop over the samples,
// alternately in one process. Each figure is the median of all rounds.

#include "autograd/vmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autograd/transforms.h"
#include "core/base/parallel.h"
#include "core/ops/factory/factory.h"
#include "core/ops/loss/loss.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "launcher/command_line.h"

namespace lockstep {
namespace {

struct Problem {
  int64_t inputs = 256;
  int64_t hidden = 512;
  int64_t classes = 10;
  int64_t batch = 64;
};

/// Cross-entropy of one sample [inputs] and its label, as a function whose first arguments are the
/// weights.
Tensor loss_of(TensorList given) {
  const Tensor hidden = relu(linear(given[4].unsqueeze(0), given[0], given[1]));
  const Tensor logits = linear(hidden, given[2], given[3]);
  return cross_entropy_loss(logits, given[5].unsqueeze(0), {}, Reduction::kSum);
}

std::vector<Tensor> gradients_of(TensorList given) {
  static constexpr int64_t kWeights[] = {0, 1, 2, 3};
  return value_and_gradients(loss_of, given, kWeights).gradients;
}

std::vector<Tensor> by_vmap(TensorList given) {
  VmapOptions options;
  options.in_dims = {std::nullopt, std::nullopt, std::nullopt, std::nullopt, 0, 0};
  return vmap(gradients_of, given, options);
}

std::vector<Tensor> by_loop(TensorList given) {
  std::vector<Tensor> sample(given.begin(), given.end());
  std::vector<std::vector<Tensor>> each(4);
  for (int64_t b = 0; b < given[4].size(0); ++b) {
    sample[4] = given[4].select(0, b);
    sample[5] = given[5].select(0, b);
    const std::vector<Tensor> gradients = gradients_of(sample);
    for (size_t i = 0; i < each.size(); ++i) each[i].push_back(gradients[i]);
  }
  std::vector<Tensor> stacked;
  for (const std::vector<Tensor>& gradients : each) stacked.push_back(stack(gradients));
  return stacked;
}

template <class F>
double microseconds(F&& body) {
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

/// Largest difference between the results of the two ways, relative to the largest gradient.
double difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double apart = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    apart = std::max(apart, max(abs(a[i] - b[i])).item<double>() / max(abs(b[i])).item<double>());
  }
  return apart;
}

}  // namespace

int run(int argc, char** argv) {
  Problem problem;
  int rounds = 40;
  int threads = 0;
  bool json = false;
  std::string only;
  launcher::CommandLine line("Per-sample gradients of an MLP: vmap against a loop");
  line.option("--batch", problem.batch, "Samples").positive();
  line.option("--rounds", rounds, "Rounds on end in each of four turns").positive();
  line.option("--threads", threads, "Threads (default: all cores)");
  line.option("--only", only, "Time one way alone, for a profiler").one_of({"vmap", "loop"});
  line.flag("--json", json, "Print an object instead of lines");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (threads > 0) set_num_threads(threads);

  manual_seed(1);
  const std::vector<Tensor> given = {randn({problem.hidden, problem.inputs}) * 0.05,
                                     zeros({problem.hidden}),
                                     randn({problem.classes, problem.hidden}) * 0.05,
                                     zeros({problem.classes}),
                                     randn({problem.batch, problem.inputs}),
                                     randint(0, problem.classes, {problem.batch})};
  const double apart = difference(by_vmap(given), by_loop(given));
  // The two ways alternate in turns of several rounds, so that each is timed in its steady state
  // with its own data in the caches, not right after the other.
  constexpr int kTurns = 4;
  std::vector<double> vmap_times, loop_times;
  const auto time = [&](std::vector<double>& times, auto&& body) {
    body(given);
    for (int round = 0; round < rounds; ++round) {
      times.push_back(microseconds([&] { body(given); }));
    }
  };
  for (int turn = 0; turn < kTurns; ++turn) {
    if (only != "loop") time(vmap_times, by_vmap);
    if (only != "vmap") time(loop_times, by_loop);
  }
  nlohmann::ordered_json values;
  values["batch"] = problem.batch;
  values["threads"] = num_threads();
  if (only != "loop") values["vmap_us"] = median(vmap_times);
  if (only != "vmap") values["loop_us"] = median(loop_times);
  if (only.empty()) values["speedup"] = median(loop_times) / median(vmap_times);
  values["relative_difference"] = apart;
  if (json) {
    fmt::print("{}\n", values.dump(1));
    return 0;
  }
  for (const auto& [name, value] : values.items()) fmt::print("{:<20} {}\n", name, value.dump());
  return 0;
}

}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run(argc, argv); }
