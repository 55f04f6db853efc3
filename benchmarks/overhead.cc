// Host cost of one small operation, in nanoseconds, and its memory: the counterpart of a script
// that times the same calls of PyTorch (benchmarks/README.md). One thread; each figure is the
// median of `--rounds` rounds, so that a single interruption does not affect it.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "benchmarks/figures.h"
#include "benchmarks/heap/heap_calls.h"
#include "benchmarks/process_memory.h"
#include "benchmarks/timer.h"
#include "core/base/parallel.h"
#include "core/base/spans/span_recorder.h"
#include "core/dispatch/kernel.h"
#include "core/dispatch/mode.h"
#include "core/dispatch/observer.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "launcher/command_line.h"
#include "profile/operator_recorder.h"

namespace lockstep {
namespace {

// An operator whose kernel does nothing: its time is the cost of dispatch.
LS_OP(nothing, int64_t(const Tensor&), "bench::nothing(Tensor self) -> int")
    .doc("Returns 0; its time is that of dispatch.")
    .host_value();

int64_t nothing(const Tensor&) { return 0; }
LS_KERNEL(CPU, "bench::nothing", nothing, Strides::kAny);

void boxed_nothing(const Operator&, KeySet, Stack& stack) {
  stack.results().emplace_back(Value(int64_t{0}));
}

struct Silent : CallObserver {
  void enter(const Operator&, KeySet, const Stack&) override {}
  void exit(const Operator&, const Stack&) noexcept override {}
};
struct Passing : DispatchMode {
  void call(const Operator& op, KeySet keys, Stack& stack) override { pass_on(op, keys, stack); }
};

/// Results by name, in the order in which they were measured.
class Report {
 public:
  Report(const Timer& time, std::string only) : time_(time), only_(std::move(only)) {}

  template <class F>
  void add(const std::string& name, F&& body, int calls = 200000) {
    if (wants(name)) set(name, time_(body, calls));
  }
  /// Adds the time per call multiplied by `scale`, for another unit.
  template <class F>
  void add_scaled(const std::string& name, double scale, F&& body, int calls) {
    if (wants(name)) set(name, scale * time_(body, calls));
  }
  bool wants(const std::string& name) const { return name.find(only_) != std::string::npos; }
  void set(const std::string& name, double value) { values_[name] = value; }
  const nlohmann::ordered_json& values() const { return values_; }

 private:
  const Timer& time_;
  std::string only_;
  nlohmann::ordered_json values_ = nlohmann::ordered_json::object();
};

void measure_dispatch(Report& report) {
  const Tensor a = ones({4});
  report.add(
      "dispatch_ns", [&] { keep(op_nothing(a)); }, 2000000);
  {
    Silent silent;
    const ObserverGuard on(silent);
    report.add(
        "dispatch_observed_ns", [&] { keep(op_nothing(a)); }, 2000000);
  }
  {
    Passing passing;
    const ModeGuard on(passing);
    report.add(
        "dispatch_mode_ns", [&] { keep(op_nothing(a)); }, 2000000);
  }
  report.add(
      "range_off_ns", [] { const Range range("range"); }, 2000000);
  {
    SpanRecorder recorder({.threads = 1, .spans = 1u << 21, .text = 1u << 27});
    // Once for the memory, then measured.
    for (int round = 0; round < 2; ++round) {
      recorder.start();
      report.add(
          "range_on_ns", [] { const Range range("range"); }, 50000);
      (void)recorder.stop();
    }
    profile::OperatorRecorder operators;
    const ObserverGuard on(operators);
    for (int round = 0; round < 2; ++round) {
      recorder.start();
      report.add(
          "dispatch_profiled_ns", [&] { keep(op_nothing(a)); }, 50000);
      (void)recorder.stop();
    }
  }
  KernelRecord record;
  record.key = Key::kCPU;
  record.boxed = &boxed_nothing;
  record.site = {__FILE__, __LINE__};
  const Registration boxed = dispatcher().register_kernel("bench::nothing", record);
  report.add(
      "boxed_noop_ns", [&] { keep(op_nothing(a)); }, 2000000);
}

void measure_operators(Report& report) {
  const Tensor a = ones({4});
  const Tensor b = ones({4});
  const Tensor square = ones({4, 4});
  {
    const InferenceModeGuard guard;
    const Tensor a = ones({4}), b = ones({4}), out = empty({4});
    report.add("add_inference_ns", [&] { keep(a + b); });
    report.add("add_out_ns", [&] { add_out(out, a, b); });
    report.add("add_inplace_ns", [&] { out.add_(a); });
    report.add("empty_ns", [&] { keep(empty({4})); });
    report.add("view_ns", [&] { keep(a.view({2, 2})); });
    report.add("slice_ns", [&] { keep(a.slice(0, 1, 3)); });
  }
  {
    const NoGradGuard guard;
    report.add("add_no_grad_ns", [&] { keep(a + b); });
    report.add("relu_ns", [&] { keep(relu(a)); });
    report.add("mm4_ns", [&] { keep(mm(square, square)); });
    report.add("layer_norm_ns", [&] { keep(layer_norm(square, {4})); });
  }
  const Tensor weight = ones({4}).set_requires_grad();
  report.add("add_recorded_ns", [&] { keep(weight + b); });
  report.add("mul_recorded_ns", [&] { keep(weight * b); });
}

/// Times one product with each dispatch key excluded in turn, which gives the cost of the key.
void measure_keys(Report& report) {
  const Tensor weight = ones({4, 4}).set_requires_grad();
  const Tensor x = ones({4, 4});
  report.add("mm4_recorded_ns", [&] { keep(mm(x, weight)); });
  for (const Key key : {Key::kAutograd, Key::kAutocast}) {
    const ExcludeKeys without(key);
    report.add(fmt::format("mm4_recorded_without_{}_ns", name(key)), [&] { keep(mm(x, weight)); });
  }
}

/// Nanoseconds of forward and backward of a 256-512-10 perceptron. On the meta device this is the
/// host cost: everything but the kernels runs.
double perceptron_ns(const Timer& time, Device device, int64_t batch, int calls) {
  const Tensor x = ones({batch, 256}, device);
  const Tensor w1 = ones({512, 256}, device).set_requires_grad();
  const Tensor b1 = ones({512}, device).set_requires_grad();
  const Tensor w2 = ones({10, 512}, device).set_requires_grad();
  const Tensor b2 = ones({10}, device).set_requires_grad();
  return time(
      [&] {
        linear(relu(linear(x, w1, b1)), w2, b2).sum().backward();
        for (const Tensor& parameter : {w1, b1, w2, b2}) parameter.set_grad({});
      },
      calls);
}

void measure_perceptron(Report& report, const Timer& time) {
  for (const int64_t batch : {1, 32, 512}) {
    const std::string row = fmt::format("perceptron_{}", batch);
    if (!report.wants(row)) continue;
    const double all = perceptron_ns(time, kCPU, batch, batch == 512 ? 50 : 500);
    report.set(row + "_us", all / 1e3);
    report.set(row + "_host_percent", 100 * perceptron_ns(time, kMeta, batch, 2000) / all);
  }
}

/// Times the graphs that the PyTorch script times.
void measure_backward(Report& report) {
  const Tensor weight = ones({4}).set_requires_grad();
  const Tensor x = ones({4});
  constexpr int kChain = 100;
  report.add_scaled(
      "chain100_forward_backward_ns_per_op", 1.0 / kChain,
      [&] {
        Tensor y = weight;
        for (int i = 0; i < kChain; ++i) y = y * x;
        y.sum().backward();
        weight.set_grad({});
      },
      2000);
  const Tensor batch = ones({8, 64});
  const Tensor w1 = ones({64, 64}).set_requires_grad();
  const Tensor b1 = ones({64}).set_requires_grad();
  const Tensor w2 = ones({64, 64}).set_requires_grad();
  const Tensor b2 = ones({64}).set_requires_grad();
  report.add_scaled(
      "mlp_forward_backward_us", 1e-3,
      [&] {
        const Tensor y = linear(relu(linear(batch, w1, b1)), w2, b2);
        square(y).mean().backward();
        for (const Tensor& parameter : {w1, b1, w2, b2}) parameter.set_grad({});
      },
      5000);
}

/// Passes its gradient on unchanged, so that only the cost of the backward engine remains.
class Relay final : public Node {
 public:
  explicit Relay(const Tensor& of) {
    add_edge(gradient_edge(of));
    add_output(*of.impl());
  }
  Gradients apply(std::span<Tensor> grads, const BackwardCall&) override {
    Gradients result;
    result.push_back(std::move(grads[0]));
    return result;
  }
  std::string name() const override { return "RelayBackward"; }
};

void measure_engine(Report& report) {
  if (!report.wants("engine")) return;
  constexpr int kNodes = 1000;
  const Tensor weight = ones({4}).set_requires_grad();
  Tensor end = weight;
  for (int i = 0; i < kNodes; ++i) {
    Ref<Node> node = make_ref<Relay>(end);
    end = weight.detach();
    set_history(*end.impl(), std::move(node), 0);
  }
  const Tensor gradient = ones({4});
  const auto run = [&] {
    end.backward(gradient);
    weight.set_grad({});
  };
  report.add_scaled("engine_ns_per_node", 1.0 / kNodes, run, 1000);
  const int64_t before = heap_calls();
  for (int i = 0; i < 100; ++i) run();
  report.set("engine_heap_calls_per_node",
             static_cast<double>(heap_calls() - before) / (100.0 * kNodes));
}

/// What a recorded call keeps until backward: its node, and its result of four elements.
void measure_node_memory(Report& report) {
  if (!report.wants("recorded_node_bytes")) return;
  constexpr int kNodes = 100'000;
  const Tensor weight = ones({4}).set_requires_grad();
  const Tensor factor = ones({4}).set_requires_grad();
  Tensor end = mul(weight, factor);
  const double before = status_bytes("VmRSS:");
  for (int i = 0; i < kNodes; ++i) end = mul(end, factor);
  report.set("recorded_node_bytes", (status_bytes("VmRSS:") - before) / kNodes);
}

int run(int argc, char** argv) {
  launcher::CommandLine line("Times small operations on one thread.");
  int rounds = 7;
  bool json = false;
  std::string only;
  line.option("--rounds", rounds, "Rounds, of which the median counts")
      .between(1, 1000)
      .shows_default();
  line.option("--only", only, "Only figures whose name contains this");
  line.flag("--json", json, "Print an object instead of lines");
  if (const auto status = line.parse(argc, argv)) return *status;
  set_num_threads(1);
  const Timer timer(rounds);
  Report report(timer, only);
  measure_dispatch(report);
  measure_operators(report);
  measure_keys(report);
  measure_perceptron(report, timer);
  measure_backward(report);
  measure_engine(report);
  measure_node_memory(report);
  print_figures(report.values(), json);
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run(argc, argv); }
