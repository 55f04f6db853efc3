// Host cost of one small operation on a device, in nanoseconds: calls return once their work is
// queued. With --null-gpu there is no device to wait for, so only the host cost remains.

#include <nlohmann/json.hpp>
#include <string>

#include "autograd/grad_mode.h"
#include "benchmarks/figures.h"
#include "benchmarks/heap/heap_calls.h"
#include "benchmarks/null_gpu/null_gpu.h"
#include "benchmarks/timer.h"
#include "core/base/parallel.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/advanced_index.h"
#include "core/ops/index/index.h"
#include "core/ops/loss/loss.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "launcher/command_line.h"

namespace lockstep {
namespace {

/// Times calls and synchronises regularly, so that the queue does not fill up.
class Report {
 public:
  Report(Device device, int rounds, std::string only)
      : device_(device), time_(rounds), only_(std::move(only)) {}

  template <class F>
  void add(const std::string& name, const F& body) {
    if (name.find(only_) == std::string::npos) return;
    constexpr int kCalls = 1000;
    for (int i = 0; i < 10; ++i) body();
    const int64_t before = heap_calls();
    for (int i = 0; i < 100; ++i) body();
    const int64_t heap = heap_calls() - before;
    synchronize(device_);
    values_[name + "_ns"] = time_(
                                [&] {
                                  for (int i = 0; i < kCalls; ++i) body();
                                  synchronize(device_);
                                },
                                20) /
                            kCalls;
    values_[name + "_heap_calls"] = static_cast<double>(heap) / 100;
  }
  const nlohmann::ordered_json& values() const { return values_; }

 private:
  Device device_;
  Timer time_;
  std::string only_;
  nlohmann::ordered_json values_ = nlohmann::ordered_json::object();
};

void measure(Report& report, Device device) {
  const NoGradGuard no_grad;
  const Tensor a = ones({4}, device), b = ones({4}, device),
               out = empty({4}, {DType::kF32, device});
  const Tensor square = ones({64, 64}, device), half = ones({64, 64}, {DType::kBF16, device});
  const Tensor weight = ones({64}, device), bias = ones({64}, device);
  const Tensor index = zeros({8}, {DType::kI64, device});
  const Tensor targets = zeros({64}, {DType::kI64, device});
  report.add("empty", [&] { keep(empty({4}, {DType::kF32, device})); });
  report.add("view", [&] { keep(a.view({2, 2})); });
  report.add("add", [&] { keep(a + b); });
  report.add("add_out", [&] { add_out(out, a, b); });
  report.add("add_inplace", [&] { out.add_(a); });
  report.add("add_broadcast", [&] { keep(square + weight); });
  report.add("relu", [&] { keep(relu(a)); });
  report.add("sum", [&] { keep(square.sum()); });
  report.add("sum_dim", [&] { keep(square.sum({0})); });
  report.add("softmax", [&] { keep(softmax(square, 1)); });
  report.add("layer_norm", [&] { keep(layer_norm(square, {64}, weight, bias)); });
  report.add("mm", [&] { keep(mm(square, square)); });
  report.add("linear", [&] { keep(linear(square, square, bias)); });
  report.add("clone", [&] { keep(square.clone()); });
  report.add("transposed_copy", [&] { keep(square.t().contiguous()); });
  report.add("cast", [&] { keep(half.to(DType::kF32)); });
  report.add("index_select", [&] { keep(index_select(square, 0, index)); });
  report.add("index", [&] { keep(lockstep::index(square, {index})); });
  report.add("embedding", [&] { keep(embedding(square, index)); });
  report.add("cross_entropy", [&] { keep(cross_entropy_loss(square, targets)); });
  {
    const EnableGradGuard grad;
    const Tensor leaf = ones({4}, device).set_requires_grad();
    report.add("add_recorded", [&] { keep(leaf + b); });
  }
}

int run(int argc, char** argv) {
  launcher::CommandLine line("Times what the host does for small operations of a device.");
  std::string device = "cuda:0";
  int rounds = 7;
  bool null_gpu = false;
  bool json = false;
  std::string only;
  line.option("--device", device, "Device of the operations").shows_default();
  line.flag("--null-gpu", null_gpu, "Have a cuda:0 that accepts everything and does nothing");
  line.option("--rounds", rounds, "Rounds, of which the median counts")
      .between(1, 1000)
      .shows_default();
  line.option("--only", only, "Only figures whose name contains this");
  line.flag("--json", json, "Print an object instead of lines");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (null_gpu) install_null_gpu();
  set_num_threads(1);
  Report report(parse_device(device), rounds, only);
  measure(report, parse_device(device));
  print_figures(report.values(), json);
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run(argc, argv); }
