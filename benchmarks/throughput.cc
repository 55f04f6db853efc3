// Large operators bound by memory or arithmetic: element-wise, reductions, norms and softmax on 16
// Mi elements, in f32 and bf16, contiguous, transposed and broadcast. Each row gives the median
// time, and the bandwidth: the bytes that the operator must move divided by that time. The first
// row is the bandwidth of plain loops over the same memory, of which the others are given as a
// share.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/parallel.h"
#include "core/dispatch/dispatcher.h"
#include "core/ops/factory/factory.h"
#include "core/ops/random/random.h"
#include "launcher/command_line.h"

namespace lockstep {
namespace {

constexpr int64_t kSide = 4096;

/// Median seconds of one call.
template <class F>
double seconds(int rounds, F&& call) {
  using Clock = std::chrono::steady_clock;
  call();
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    call();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<size_t>(rounds / 2)];
}

struct Row {
  std::string name;
  double ms;
  double gb_per_s;
};

class Bench {
 public:
  Bench(DType dtype, int rounds, std::string only)
      : dtype_(dtype), rounds_(rounds), only_(std::move(only)) {}

  /// Calls an operator with arguments in schema order; omitted ones take their defaults.
  void add(const std::string& row, std::string_view op_name, std::vector<Value> arguments,
           int64_t elements_moved) {
    if (row.find(only_) == std::string::npos) return;
    const Operator& op = dispatcher().find(op_name);
    const std::vector<Argument>& schema = op.schema().arguments;
    const bool has_out = op.form() == OpForm::kOut;
    Value out;
    if (has_out) {
      out = std::move(arguments.back());
      arguments.pop_back();
    }
    while (arguments.size() + (has_out ? 1 : 0) < schema.size()) {
      arguments.push_back(schema[arguments.size()].default_value);
    }
    if (has_out) arguments.push_back(std::move(out));
    const double time = seconds(rounds_, [&] {
      Stack stack(arguments);
      op.call_boxed(stack);
    });
    push(row, time, elements_moved * static_cast<int64_t>(size_of(dtype_)));
  }
  void push(const std::string& row, double time, int64_t bytes) {
    rows_.push_back({row, 1e3 * time, 1e-9 * static_cast<double>(bytes) / time});
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  DType dtype_;
  int rounds_;
  std::string only_;
  std::vector<Row> rows_;
};

/// Median seconds of out = a + b over the same number of bytes, as a plain loop.
double plain_sum_seconds(int rounds, int64_t bytes) {
  const int64_t n = bytes / 4;
  const Tensor a = ones({n}), b = ones({n}), out = ones({n});
  return seconds(rounds, [&] {
    parallel_for(0, n, 32768, [&](int64_t first, int64_t last) {
      const float* x = a.data<float>();
      const float* y = b.data<float>();
      float* z = out.data<float>();
      for (int64_t i = first; i < last; ++i) z[i] = x[i] + y[i];
    });
  });
}

std::vector<Row> measure(DType dtype, int rounds, const std::string& only) {
  Bench bench(dtype, rounds, only);
  const int64_t n = kSide * kSide;
  const int64_t bytes = n * static_cast<int64_t>(size_of(dtype));
  bench.push("plain a + b", plain_sum_seconds(rounds, bytes), 3 * bytes);
  const Tensor a = randn({kSide, kSide}).to(dtype);
  const Tensor b = randn({kSide, kSide}).to(dtype);
  const Tensor row = randn({kSide}).to(dtype);
  const Tensor column = randn({kSide, 1}).to(dtype);
  const Tensor out = zeros({kSide, kSide}, dtype);
  const Tensor turned = a.t();
  const auto dims = [](int64_t dim) { return Value(IntList({dim})).own(); };
  bench.add("add", "add.out", {a, b, Scalar(1), out}, 3 * n);
  bench.add("add transposed", "add.out", {turned, b, Scalar(1), out}, 3 * n);
  bench.add("add row", "add.out", {a, row, Scalar(1), out}, 2 * n);
  bench.add("add column", "add.out", {a, column, Scalar(1), out}, 2 * n);
  bench.add("mul", "mul.out", {a, b, out}, 3 * n);
  bench.add("mul number", "mul.Scalar_out", {a, Scalar(1.5), out}, 2 * n);
  bench.add("relu", "relu.out", {a, out}, 2 * n);
  bench.add("exp", "exp.out", {a, out}, 2 * n);
  bench.add("tanh", "tanh.out", {a, out}, 2 * n);
  bench.add("gelu", "gelu.out", {a, Value("none"), out}, 2 * n);
  bench.add("copy transposed", "copy_", {out, turned}, 2 * n);
  bench.add("sum all", "sum.dim_IntList", {a, Value(IntList({0, 1})).own()}, n);
  bench.add("sum columns", "sum.dim_IntList", {a, dims(0)}, n);
  bench.add("sum rows", "sum.dim_IntList", {a, dims(1)}, n);
  bench.add("amax columns", "amax", {a, dims(0)}, n);
  bench.add("amax rows", "amax", {a, dims(1)}, n);
  bench.add("layer_norm", "native_layer_norm", {a, Value(IntList({kSide})).own(), row, row, 1e-5},
            2 * n);
  bench.add("softmax", "_softmax.out", {a, int64_t{1}, false, out}, 2 * n);
  bench.add("softmax columns", "_softmax.out", {a, int64_t{0}, false, out}, 2 * n);
  bench.add("log_softmax", "_log_softmax.out", {a, int64_t{1}, false, out}, 2 * n);
  return bench.rows();
}

int run(int argc, char** argv) {
  launcher::CommandLine line("Times large operators on 16 Mi elements.");
  int rounds = 9;
  int threads = num_threads();
  bool json = false;
  std::string only;
  line.option("--rounds", rounds, "Rounds, of which the median counts")
      .between(1, 1000)
      .shows_default();
  line.option("--threads", threads, "Kernel threads").between(1, 4096);
  line.option("--only", only, "Only rows whose name contains this");
  line.flag("--json", json, "Print an object of milliseconds instead of lines");
  if (const auto status = line.parse(argc, argv)) return *status;
  set_num_threads(threads);
  nlohmann::ordered_json result = nlohmann::ordered_json::object();
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const std::vector<Row> rows = measure(dtype, rounds, only);
    for (const Row& row : rows) {
      result[to_string(dtype)][row.name] = row.ms;
      if (json) continue;
      fmt::print("{:<9} {:<16} {:8.2f} ms {:8.1f} GB/s {:5.0f} %\n", to_string(dtype), row.name,
                 row.ms, row.gb_per_s, 100 * row.gb_per_s / rows[0].gb_per_s);
    }
  }
  if (json) fmt::print("{}\n", result.dump());
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run(argc, argv); }
