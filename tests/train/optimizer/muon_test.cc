#include "train/optimizer/muon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/thread_pool.h"
#include "core/dispatch/observer.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/optim/reference.h"
#include "tests/train/rank_runs.h"
#include "tests/train/table_run.h"
#include "train/run/checkpoint.h"

namespace lockstep::train {
namespace {

// --- the orthogonal factor -----------------------------------------------------------------------

Tensor drawn(IntList sizes, uint64_t seed) {
  Generator generator(seed);
  return randn(sizes, DType::kF32, &generator);
}

/// An orthogonal matrix of `size` rows: a reflection at a random plane.
Tensor reflection(int64_t size, uint64_t seed) {
  const Tensor normal = drawn({size, 1}, seed);
  Tensor identity = zeros({size, size}, {DType::kF32, kCPU});
  for (int64_t i = 0; i < size; ++i) identity.data<float>()[i * size + i] = 1;
  return identity - mm(normal, normal.t()) * 2 / mm(normal.t(), normal);
}

/// The n singular values of the test's matrices, from 1 down to 0.02.
Tensor singular_values(int64_t n) {
  Tensor values = zeros({n}, {DType::kF32, kCPU});
  for (int64_t i = 0; i < n; ++i) {
    values.data<float>()[i] = 1.0F - 0.98F * static_cast<float>(i) / static_cast<float>(n - 1);
  }
  return values;
}

/// U^T orthogonalized(U S V^T) V: the new singular values on its diagonal, zeros elsewhere, if the
/// singular vectors stayed.
Tensor in_singular_vectors(int64_t rows, int64_t columns, DType products) {
  const int64_t least = std::min(rows, columns);
  const Tensor left = reflection(rows, 1).slice(1, 0, least).contiguous();
  const Tensor right = reflection(columns, 2).slice(1, 0, least).contiguous();
  const Tensor matrix = mm(left * singular_values(least), right.t()) * 37;
  return mm(mm(left.t(), orthogonalized(matrix, 5, products)), right).contiguous();
}

TEST(Muon, OrthogonalizedMatrixKeepsSingularVectorsAndHasSingularValuesNearOne) {
  struct Case {
    int64_t rows, columns;
    DType products;
    double tolerance;  ///< of the elements off the diagonal
  };
  for (const Case& c : {Case{24, 40, DType::kF32, 1e-4}, Case{40, 24, DType::kF32, 1e-4},
                        Case{32, 32, DType::kF32, 1e-4}, Case{24, 40, DType::kBF16, 0.1}}) {
    const Tensor found = in_singular_vectors(c.rows, c.columns, c.products);
    for (int64_t i = 0; i < found.size(0); ++i) {
      for (int64_t j = 0; j < found.size(1); ++j) {
        const double value = found.data<float>()[i * found.size(1) + j];
        if (i == j) {
          EXPECT_GT(value, 0.6) << c.rows << "x" << c.columns << ", value " << i;
          EXPECT_LT(value, 1.3) << c.rows << "x" << c.columns << ", value " << i;
        } else {
          EXPECT_NEAR(value, 0, c.tolerance) << c.rows << "x" << c.columns;
        }
      }
    }
  }
}

TEST(Muon, MatrixOfZerosStaysZero) {
  const Tensor zero = zeros({3, 5}, {DType::kF32, kCPU});
  EXPECT_TRUE(equal(orthogonalized(zero, 5, DType::kF32), zero));
}

TEST(Muon, OrthogonalizedRefusesWhatIsNoMatrix) {
  expect_error<ShapeError>(
      [] {
        orthogonalized(drawn({2, 3, 4}, 1), 5, DType::kF32);
      },
      "expected a matrix");
}

// --- one step ------------------------------------------------------------------------------------

/// A wide matrix, a tall one, a filter, an embedding and a bias, with gradients.
struct MuonProblem {
  std::vector<Tensor> parameters, gradients;
  Muon optimizer;

  explicit MuonProblem(const MuonOptions& options = {}) : MuonProblem(options, draw(5), draw(6)) {}
  void step(const Tensor& found_inf = {}) {
    optimizer.step(gradients, 0.1, 0.5, {.grad_factor = {}, .found_inf = found_inf});
  }

 private:
  MuonProblem(const MuonOptions& options, std::vector<Tensor> values, std::vector<Tensor> slopes)
      : parameters(std::move(values)),
        gradients(std::move(slopes)),
        optimizer(
            {{"h.wide", parameters[0]},
             {"h.tall", parameters[1]},
             {"h.filter", parameters[2]},
             {"embedding", parameters[3]},
             {"h.bias", parameters[4]}},
            [](std::string_view name) { return name.starts_with("h."); }, options) {}
  static std::vector<Tensor> draw(uint64_t seed) {
    return {drawn({4, 6}, seed), drawn({8, 2}, seed + 10), drawn({3, 2, 2, 2}, seed + 20),
            drawn({5, 4}, seed + 30), drawn({4}, seed + 40)};
  }
};

void expect_same_problem(const MuonProblem& got, const MuonProblem& want) {
  EXPECT_EQ(got.optimizer.steps(), want.optimizer.steps());
  for (size_t i = 0; i < got.parameters.size(); ++i) {
    EXPECT_TRUE(equal(got.parameters[i], want.parameters[i])) << i;
  }
  const auto states = got.optimizer.state(), wanted = want.optimizer.state();
  ASSERT_EQ(states.size(), wanted.size());
  for (size_t i = 0; i < states.size(); ++i) {
    EXPECT_TRUE(equal(states[i].tensor, wanted[i].tensor)) << states[i].name;
  }
}

TEST(Muon, StepIsTheOrthogonalizedNesterovDirectionWithDecoupledDecay) {
  MuonProblem problem({.learning_rate_ratio = 0.3, .weight_decay = 0.2});
  Tensor weight = problem.parameters[1].clone();  // 8x2, so that the scale is 2
  Tensor buffer = zeros({8, 2}, {DType::kF32, kCPU});
  for (int i = 0; i < 3; ++i) {
    problem.step();
    const Tensor gradient = problem.gradients[1] * 0.5;
    buffer = buffer * 0.95 + gradient;
    const Tensor step = orthogonalized(gradient + buffer * 0.95, 5, DType::kF32) * 2;
    weight = weight - (step + weight * 0.2) * (0.1 * 0.3);
  }
  EXPECT_TRUE(all(isclose(problem.parameters[1], weight, 1e-4, 1e-5)).item<bool>());
}

/// The published update in plain loops and f64, of a matrix in rows.
class ReferenceMuon {
 public:
  ReferenceMuon(const Tensor& weight, const MuonOptions& options)
      : rows_(weight.size(0)), columns_(weight.size(1)), options_(options) {
    for (int64_t i = 0; i < weight.numel(); ++i) weight_.push_back(weight.data<float>()[i]);
    buffer_.resize(weight_.size());
  }

  void step(const Tensor& gradient, double rate, double grad_scale) {
    std::vector<double> direction(weight_.size());
    for (size_t i = 0; i < weight_.size(); ++i) {
      const double slope = gradient.data<float>()[i] * grad_scale;
      buffer_[i] = options_.momentum * buffer_[i] + slope;
      direction[i] = slope + options_.momentum * buffer_[i];
    }
    const std::vector<double> step = orthogonal(direction);
    const double scale =
        std::sqrt(std::max(1.0, static_cast<double>(rows_) / static_cast<double>(columns_)));
    for (size_t i = 0; i < weight_.size(); ++i) {
      weight_[i] -= rate * options_.learning_rate_ratio *
                    (scale * step[i] + options_.weight_decay * weight_[i]);
    }
  }
  const std::vector<double>& weight() const { return weight_; }

 private:
  /// x x^T.
  std::vector<double> gram(const std::vector<double>& x) const {
    const auto n = static_cast<size_t>(rows_), m = static_cast<size_t>(columns_);
    std::vector<double> product(n * n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        for (size_t k = 0; k < m; ++k) product[i * n + j] += x[i * m + k] * x[j * m + k];
      }
    }
    return product;
  }
  std::vector<double> times(const std::vector<double>& square, const std::vector<double>& x) const {
    const auto n = static_cast<size_t>(rows_), m = x.size() / n;
    std::vector<double> product(x.size());
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < n; ++k) {
        for (size_t j = 0; j < m; ++j) product[i * m + j] += square[i * n + k] * x[k * m + j];
      }
    }
    return product;
  }
  /// x x^T x is the same whether the matrix is wide or tall.
  std::vector<double> orthogonal(std::vector<double> x) const {
    double squares = 0;
    for (const double each : x) squares += each * each;
    for (double& each : x) each /= std::sqrt(squares) + 1e-7;
    for (int64_t i = 0; i < options_.iterations; ++i) {
      const std::vector<double> square = gram(x);
      const std::vector<double> cubic = times(square, x), quintic = times(square, cubic);
      for (size_t j = 0; j < x.size(); ++j) {
        x[j] = 3.4445 * x[j] - 4.7750 * cubic[j] + 2.0315 * quintic[j];
      }
    }
    return x;
  }

  int64_t rows_, columns_;
  MuonOptions options_;
  std::vector<double> weight_, buffer_;
};

TEST(Muon, FiftyStepsAreThoseOfAReferenceInPlainLoops) {
  const MuonOptions options{.learning_rate_ratio = 0.3, .weight_decay = 0.2};
  MuonProblem problem(options);
  std::vector<ReferenceMuon> references;
  for (const size_t matrix : {0, 1}) references.emplace_back(problem.parameters[matrix], options);
  for (uint64_t step = 0; step < 50; ++step) {
    for (size_t i = 0; i < problem.gradients.size(); ++i) {
      problem.gradients[i].copy_(drawn(problem.gradients[i].sizes(), 100 * step + i));
    }
    problem.step();
    for (size_t matrix = 0; matrix < 2; ++matrix) {
      references[matrix].step(problem.gradients[matrix], 0.1, 0.5);
      for (int64_t i = 0; i < problem.parameters[matrix].numel(); ++i) {
        ASSERT_NEAR(problem.parameters[matrix].data<float>()[i],
                    references[matrix].weight()[static_cast<size_t>(i)], 2e-4)
            << "step " << step << ", matrix " << matrix << ", element " << i;
      }
    }
  }
}

/// The steps that tests/optim/record_reference.py recorded of torch.optim.Muon.
void expect_recorded_steps(const char* name, double rate, const MuonOptions& options) {
  const nlohmann::json& recorded = optim::reference()["muon"][name];
  ASSERT_EQ(recorded.size(), 2u);
  const std::vector<std::vector<int64_t>> shapes = {{3, 5}, {4, 2}};
  for (size_t number = 0; number < shapes.size(); ++number) {
    const Tensor matrix = zeros(shapes[number]), gradient = zeros(shapes[number]);
    for (int64_t i = 0; i < matrix.numel(); ++i) {
      matrix.data<float>()[i] = static_cast<float>(0.5 - 0.1 * static_cast<double>(i));
    }
    Muon optimizer(
        {{"matrix", matrix}}, [](std::string_view) { return true; }, options);
    for (int step = 1; step <= 50; ++step) {
      for (int64_t i = 0; i < matrix.numel(); ++i) {
        const double wave = std::sin(0.7 * step + static_cast<double>(i));
        gradient.data<float>()[i] = static_cast<float>(matrix.data<float>()[i] * 0.8 + wave);
      }
      optimizer.step(std::vector{gradient}, rate, 1);
      const std::string key = std::to_string(step);
      if (!recorded[number].contains(key)) continue;
      optim::expect_near(optim::elements({matrix}), recorded[number][key], 2e-4,
                         fmt::format("{}, step {}, matrix {}", name, step, number));
    }
  }
}

TEST(Muon, FiftyStepsArePyTorchs) {
  expect_recorded_steps("muon", 0.03, {.weight_decay = 0.2});
  expect_recorded_steps("muon_plain", 0.05,
                        {.momentum = 0.8, .nesterov = false, .iterations = 3, .weight_decay = 0});
}

TEST(Muon, OtherParametersTakeTheStepsOfAdamW) {
  MuonProblem problem;
  std::vector<Tensor> parameters = {problem.parameters[3].clone(), problem.parameters[4].clone()};
  AdamW other({{"embedding", parameters[0]}, {"h.bias", parameters[1]}}, {});
  for (int i = 0; i < 3; ++i) {
    problem.step();
    other.step({problem.gradients[3], problem.gradients[4]}, 0.1, 0.5);
  }
  EXPECT_TRUE(equal(problem.parameters[3], parameters[0]));
  EXPECT_TRUE(equal(problem.parameters[4], parameters[1]));
}

TEST(Muon, StateNamesEveryParameterUnderItsRule) {
  std::set<std::string> names;
  for (const nn::StoredParameter& each : MuonProblem().optimizer.state()) names.insert(each.name);
  EXPECT_EQ(names,
            (std::set<std::string>{"momentum_buffer.h.wide", "momentum_buffer.h.tall",
                                   "momentum_buffer.h.filter", "exp_avg.embedding",
                                   "exp_avg.h.bias", "exp_avg_sq.embedding", "exp_avg_sq.h.bias"}));
}

TEST(Muon, PartsOfAStepAreTheWhole) {
  MuonProblem parts, whole;
  for (int i = 0; i < 3; ++i) {
    whole.step();
    parts.optimizer.begin_parts();
    for (const std::vector<uint32_t>& part : {std::vector<uint32_t>{4, 1}, {3}, {0, 2}}) {
      parts.optimizer.step_part(part, parts.gradients, 0.1, 0.5);
    }
  }
  expect_same_problem(parts, whole);
}

TEST(Muon, StepThatIsLeftOutChangesNothing) {
  MuonProblem some, want;
  for (const double found : {0, 1, 0}) {
    some.step(full({}, found, {DType::kF32, kCPU}));
    if (found == 0) want.step();
  }
  expect_same_problem(some, want);
}

/// Says of each call of an operator whether its thread shares the loop it is in with others.
class SharedCalls final : public CallObserver {
 public:
  void enter(const Operator& op, KeySet, const Stack&) override {
    calls[std::string(op.name())].push_back(thread_pool::in_part());
  }
  void exit(const Operator&, const Stack&) noexcept override {}
  std::map<std::string, std::vector<bool>> calls;
};

TEST(Muon, AThreadWhoseCallsAreWatchedUpdatesEveryMatrixItself) {
  MuonProblem watched, want;
  want.step();
  const int before = num_threads();
  set_num_threads(4);
  SharedCalls observed;
  {
    const ObserverGuard guard(observed);
    watched.step();
  }
  set_num_threads(before);
  // Two calls for each of the three matrices: its direction and its step.
  EXPECT_EQ(observed.calls["_fused_sgd_"], std::vector<bool>(6, false));
  expect_same_problem(watched, want);
}

// --- runs ----------------------------------------------------------------------------------------

config::RunConfig muon_run(const TemporaryDirectory& folder, const std::string& more = "",
                           const std::string& optimizer = "", const std::string& muon = "") {
  return tiny_run(
      folder, more + " optimizer { muon { learning_rate: 0.02 " + muon + " } " + optimizer + " }");
}

TEST(MuonRun, LowersTheLossAndHasTheSameWeightsOnEveryRank) {
  const TemporaryDirectory folder;
  const std::vector<Trace> ranks = traces(muon_run(folder, "precision: BF16_MIXED"), 2, 20);
  EXPECT_LT(ranks[0].losses.back(), 0.9 * ranks[0].losses.front());
  EXPECT_TRUE(ranks[0] == ranks[1]);
}

TEST(MuonRun, HasTheSameBitsOnAnyNumberOfThreadsAndRanksWhereTheRunIsBitwise) {
  const TemporaryDirectory folder;
  const std::string bitwise = "reproducibility: BITWISE train { micro_batch_size: 1 leaves: 8 }";
  const Trace one = traces(muon_run(folder, bitwise + " threads: 1"), 1, 4)[0];
  EXPECT_TRUE(traces(muon_run(folder, bitwise + " threads: 4"), 1, 4)[0] == one);
  EXPECT_TRUE(traces(muon_run(folder, bitwise + " threads: 2"), 2, 4)[1] == one);
}

TEST(MuonRun, RanksThatShareTheMatricesHaveTheBitsOfThoseThatDoNot) {
  const TemporaryDirectory folder;
  const std::string groups =
      "groups { parameters: \"h.0\" learning_rate_factor: 0.5 } groups { parameters: \"wte\" }";
  for (const auto& [more, optimizer] : std::vector<std::pair<std::string, std::string>>{
           {"", ""}, {"", groups}, {"precision: BF16_MIXED", ""}, {"device: \"host:0\"", ""}}) {
    const std::string base = more + " train { micro_batch_size: 1 }";
    const config::RunConfig alone = muon_run(folder, base, optimizer),
                            shared = muon_run(folder, base, optimizer, "share_ranks: true");
    for (const int ranks : {2, 4}) {
      EXPECT_TRUE(traces(shared, ranks, 3) == traces(alone, ranks, 3)) << more << ranks;
    }
    // A single rank has nobody to share with.
    EXPECT_TRUE(trace(shared, 3) == trace(alone, 3));
  }
  expect_exact_resume("optimizer { muon { share_ranks: true } } ", 2);
}

/// A BITWISE run with matrices that are larger than a block of shards, so that ranks keep parts.
config::RunConfig spread_run(const TemporaryDirectory& folder, const std::string& more = "",
                             const std::string& optimizer = "") {
  return layered_run(folder,
                     "reproducibility: BITWISE train { micro_batch_size: 1 leaves: 8 } "
                     "model { gpt2 { width: 64 } } optimizer { muon { learning_rate: 0.02 } " +
                         optimizer + " } " + more);
}

TEST(MuonRun, ShardsChangeNoBitWhereTheRunIsBitwise) {
  const TemporaryDirectory folder;
  const Trace one = trace(spread_run(folder), 3);
  for (const auto& [strategy, ranks] :
       {std::pair("FULL_SHARD", 2), std::pair("FULL_SHARD", 3), std::pair("SHARD_GRAD_OP", 8),
        std::pair("SHARD_OPTIMIZER", 3), std::pair("HYBRID_SHARD shard_size: 2", 4)}) {
    const std::string parallel = std::string("parallel { strategy: ") + strategy + " } ";
    for (const Trace& each : traces(spread_run(folder, parallel), ranks, 3)) {
      EXPECT_EQ(each, one) << strategy << ranks;
    }
  }
}

TEST(MuonRun, ShardsChangeNoBitOfGroupsPrecisionsAndDevices) {
  const TemporaryDirectory folder;
  const std::string parallel = "parallel { strategy: FULL_SHARD } ";
  const std::string groups =
      "groups { parameters: \"h.0\" learning_rate_factor: 0.5 } groups { parameters: \"wte\" }";
  for (const auto& [more, optimizer] :
       std::vector<std::pair<std::string, std::string>>{{"", groups},
                                                        {"precision: BF16_MIXED ", ""},
                                                        {"model { freeze: \"h.0\" } ", ""},
                                                        {"device: \"host:0\" ", ""}}) {
    const Trace one = trace(spread_run(folder, more, optimizer), 3);
    for (const Trace& each : traces(spread_run(folder, more + parallel, optimizer), 3, 3)) {
      EXPECT_EQ(each, one) << more << optimizer;
    }
  }
  const Trace one = trace(spread_run(folder), 3);
  const std::string offload = "parallel { strategy: FULL_SHARD cpu_offload: true } ";
  for (const Trace& each : traces(spread_run(folder, "device: \"host:0\" " + offload), 2, 3)) {
    EXPECT_EQ(each, one);
  }
}

TEST(MuonRun, AShardedRunGoesOnWithAnotherStrategyAndAverages) {
  const auto config = [](const TemporaryDirectory& folder, const std::string& parallel) {
    return tiny_run(
        folder,
        "reproducibility: BITWISE optimizer { muon {} } train { micro_batch_size: 1 "
        "leaves: 8 steps: 6 weight_average { decay: 0.9 } } model { gpt2 { width: 64 } } "
        "checkpoint { every_steps: 1 } parallel { strategy: " +
            parallel + " }");
  };
  const TemporaryDirectory whole, parts;
  rethrow_first(run_on_ranks(config(whole, "DDP"), whole, 1));
  for (const auto& [strategy, ranks] : {std::pair("FULL_SHARD", 3), std::pair("DDP", 1)}) {
    int asked = 0;
    (void)run_on_ranks(config(parts, strategy), parts, ranks, [&] { return ++asked >= 3; });
  }
  rethrow_first(run_on_ranks(config(parts, "SHARD_OPTIMIZER"), parts, 2));
  EXPECT_TRUE(weights_of(parts) == weights_of(whole));
}

TEST(MuonRun, ARankThatSharesOrthogonalizesItsOwnMatricesAlone) {
  // Products of the Newton-Schulz iterations, which no other operator computes here.
  const auto products = [](dist::ProcessGroup* group) {
    MuonProblem problem;
    problem.optimizer.share_between(group);
    SharedCalls calls;
    const ObserverGuard observed(calls);
    problem.step();
    return calls.calls["aten::addmm"].size() + calls.calls["addmm"].size();
  };
  const size_t alone = products(nullptr);
  EXPECT_EQ(alone, 3u * 5 * 2);  // three matrices, five iterations
  std::atomic<size_t> together = 0;
  rethrow_first(dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
    const size_t own = products(&group);
    EXPECT_LT(own, alone);
    together += own;
  }));
  EXPECT_EQ(together, alone);
}

TEST(MuonRun, UpdatesInBackwardHaveTheBitsOfUpdatesAfterIt) {
  const TemporaryDirectory folder;
  const std::string buckets = "parallel { bucket_mib: 0.004 first_bucket_mib: 0.002 }";
  const auto bits = [&](const char* in_backward) {
    return traces(muon_run(folder, buckets,
                           std::string("clip_grad_norm: 0 optimizer_in_backward: ") + in_backward),
                  2, 4);
  };
  EXPECT_TRUE(bits("true") == bits("false"));
}

TEST(MuonRun, HasTheBitsOfTheCpuOnAnAsynchronousDevice) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(trace(muon_run(folder, "device: \"host:0\""), 4) == trace(muon_run(folder), 4));
}

TEST(MuonRun, ResumesFromACheckpointWithTheSameBits) {
  const TemporaryDirectory folder;
  const config::RunConfig config = muon_run(folder);
  Trainer whole = Trainer::create(config), first = Trainer::create(config);
  trace(whole, 6);
  trace(first, 3);
  save_checkpoint(folder / "checkpoints", first, config::to_text(config));
  Trainer second = Trainer::create(config);
  const std::filesystem::path path = list_checkpoints(folder / "checkpoints").back().path;
  restore(second, path, verify_checkpoint(path));
  trace(second, 3);
  EXPECT_TRUE(state_bytes(second) == state_bytes(whole));
}

/// Names of the parameters that a model's Muon orthogonalises.
std::set<std::string> matrices_of(const config::RunConfig& config) {
  std::set<std::string> names;
  const std::string prefix = "momentum_buffer.";
  Trainer trainer = Trainer::create(config);
  for (const nn::StoredParameter& each : trainer.optimizer().state()) {
    if (each.name.starts_with(prefix)) names.insert(each.name.substr(prefix.size()));
  }
  return names;
}

TEST(MuonRun, OrthogonalizesTheMatricesOfTheBlocks) {
  const TemporaryDirectory folder;
  EXPECT_EQ(matrices_of(muon_run(folder, "model { gpt2 { layers: 1 } }")),
            (std::set<std::string>{"h.0.attn.c_attn.weight", "h.0.attn.c_proj.weight",
                                   "h.0.mlp.c_fc.weight", "h.0.mlp.c_proj.weight"}));
  const std::string block = "model.layers.0.";
  EXPECT_EQ(
      matrices_of(
          muon_run(folder, "model { llama { context_length: 16 layers: 1 heads: 2 width: 16 } }")),
      (std::set<std::string>{block + "self_attn.q_proj.weight", block + "self_attn.k_proj.weight",
                             block + "self_attn.v_proj.weight", block + "self_attn.o_proj.weight",
                             block + "mlp.gate_proj.weight", block + "mlp.up_proj.weight",
                             block + "mlp.down_proj.weight"}));
  EXPECT_EQ(matrices_of(muon_run(folder, tiny_resnet(folder))),
            (std::set<std::string>{"layer1.0.conv1.weight", "layer1.0.conv2.weight"}));
  EXPECT_EQ(matrices_of(
                muon_run(folder, "model { mlp { inputs: 16 hidden_widths: [12, 8] classes: 4 } } " +
                                     table_data(folder))),
            (std::set<std::string>{"layers.1.weight"}));
}

TEST(MuonRun, ModelWithoutHiddenMatricesIsRefused) {
  const TemporaryDirectory folder;
  const config::RunConfig config = muon_run(
      folder, "model { mlp { inputs: 16 hidden_widths: [12] classes: 4 } } " + table_data(folder));
  expect_error<ConfigError>([&] { Trainer::create(config); }, "optimizer.muon",
                            "no hidden matrices");
}

}  // namespace
}  // namespace lockstep::train
