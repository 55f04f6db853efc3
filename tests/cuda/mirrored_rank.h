#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/device/active_capture.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"
#include "core/tensor/stream.h"
#include "dist/group/process_group.h"
#include "dist/group/work_state.h"
#include "tests/train/step_story.h"
#include "tests/train/tiny_run.h"
#include "train/build.h"

namespace lockstep::train {

inline constexpr const char* kOnGpu = "device: \"cuda\" ";
inline constexpr const char* kGraphs = "compile { cuda_graphs: true } ";

/// All results of a step but for times, and where its random numbers ended.
inline std::string all_of(const StepResult& step) {
  const RandomKey next = default_generator().state();
  return text_of(step) + fmt::format("{} {} {}\n", next.step, next.micro_batch, next.call);
}

/// Seen from one of two ranks that compute and keep the same: what comes from the other one is
/// computed of this one's values, where these are.
class MirroredGroup final : public dist::ProcessGroup {
 public:
  explicit MirroredGroup(std::string name = "world") : ProcessGroup(0, 2, std::move(name)) {}
  const char* backend() const noexcept override { return "nccl"; }
  bool adds_in_one_order() const noexcept override { return false; }
  std::unique_ptr<ProcessGroup> subgroup(std::vector<int>, std::string name) override {
    auto group = std::make_unique<MirroredGroup>(std::move(name));
    group->goes_through_the_cpu = goes_through_the_cpu;
    return group;
  }
  std::optional<uint64_t> bytes_sent() const noexcept override { return std::nullopt; }
  void abort(const std::string&) noexcept override {}

  int sums_on_gpu = 0;  ///< calls, those of captures among them
  bool goes_through_the_cpu = false;
  std::function<void(const Tensor&)> on_cpu = [](const Tensor&) {};

 private:
  /// On a GPU beside the work of the caller, as NCCL's calls are.
  dist::Work start(Launch launch) override {
    if (launch.device.type != DeviceType::kCUDA) {
      compute(launch);
      return {};
    }
    const auto work = std::make_shared<dist::WorkState>();
    work->device = launch.device;
    if (!side_) side_.emplace(launch.device);
    const Stream side = side_->get();
    side.wait_stream(current_stream(launch.device));
    {
      const StreamGuard on_side(side);
      compute(launch);
    }
    work->finished.record(side);
    for (const Tensor& tensor : launch.tensors) tensor.record_use(side);
    work->finish(nullptr);
    return dist::Work(work);
  }

  void compute(const Launch& launch) {
    const NoGradGuard no_grad;
    const dist::Operation& operation = launch.operations.front();
    const bool is_on_gpu = launch.device.type == DeviceType::kCUDA;
    const bool reduces = dist::is_reduction(operation.kind);
    if (goes_through_the_cpu && is_on_gpu && reduces) {
      require_no_capture("all_reduce", "the sum is made on the cpu");
    }
    if (launch.tensors.empty()) return;
    const Tensor& output = launch.tensors.front();
    const Tensor input = launch.tensors.size() > 1 ? launch.tensors[1].view({-1}) : output;
    if (operation.kind == dist::OpKind::kAllGather) {
      const Tensor parts = output.view({2, -1});
      for (const int64_t rank : {0, 1}) {
        const Tensor part = select(parts, 0, rank);
        if (part.data() != input.data()) copy_(part, input, /*non_blocking=*/true);
      }
    }
    if (!reduces) return;
    if (input.data() != output.data()) {
      copy_(output, slice(input, 0, 0, output.numel()).view(output.sizes()), /*non_blocking=*/true);
    }
    if (operation.reduction.op == dist::ReduceOp::kSum) output.mul_(2);
    if (is_on_gpu) ++sums_on_gpu;
    if (!is_on_gpu) on_cpu(output);
  }

  std::optional<OwnedStream> side_;
};

/// A trainer that is a rank of two.
inline Trainer trainer_of_two(const TemporaryDirectory& folder, const std::string& more,
                              MirroredGroup& group) {
  const config::RunConfig config = layered_run(folder, kOnGpu + more);
  return Trainer::create(config, build_task(config, share_of_step(config.train(), &group)), &group);
}

}  // namespace lockstep::train
