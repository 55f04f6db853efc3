#include "tests/dist/nccl/fake_nccl_staging.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/tensor/stream.h"
#include "dist/group/work_state.h"

namespace lockstep::dist {
namespace {

class StagedGroup final : public ProcessGroup {
 public:
  StagedGroup(std::unique_ptr<ProcessGroup> owned, ProcessGroup& inner, Device device)
      : ProcessGroup(inner.rank(), inner.size(), inner.name()),
        owned_(std::move(owned)),
        inner_(inner),
        device_(device) {}
  ~StagedGroup() override {
    for (std::thread& thread : threads_) thread.join();
  }

  const char* backend() const noexcept override { return inner_.backend(); }
  bool adds_in_one_order() const noexcept override { return inner_.adds_in_one_order(); }
  std::unique_ptr<ProcessGroup> subgroup(std::vector<int> ranks, std::string name) override {
    auto group = inner_.subgroup(std::move(ranks), std::move(name));
    return group == nullptr ? nullptr : staged_group(std::move(group), device_);
  }
  std::optional<uint64_t> bytes_sent() const noexcept override { return inner_.bytes_sent(); }
  void abort(const std::string& reason) noexcept override { inner_.abort(reason); }

 private:
  /// A CPU tensor and its copy on the device.
  struct Pair {
    Tensor here;
    Tensor there;
  };
  struct Starter : ProcessGroup {
    static Work pass_on(ProcessGroup& group, Launch launch) {
      return (group.*&Starter::start)(std::move(launch));
    }
  };

  Work start(Launch launch) override {
    const OpKind kind = launch.operations.front().kind;
    if (launch.device != kCPU || kind == OpKind::kBarrier) {
      return Starter::pass_on(inner_, std::move(launch));
    }
    std::vector<Pair> pairs;
    for (Tensor& tensor : launch.tensors) {
      pairs.push_back({tensor, tensor.to(device_)});
      tensor = pairs.back().there;
    }
    std::vector<Pair> written;
    if (launch.operations.front().reduction.leaves > 0) {
      // On the device the rows are contiguous, and the result is not one of them.
      Operation& operation = launch.operations.front();
      const Tensor& sums = pairs.back().there;
      operation.input = sums.data();
      operation.input_stride = static_cast<uint64_t>(sums.stride(0)) * size_of(sums.dtype());
      operation.output = pairs.front().there.data();
      return follow(Starter::pass_on(inner_, on_device(std::move(launch))), {pairs.front()});
    }
    for (Operation& operation : launch.operations) {
      const Pair& output = pair_of(pairs, operation.output);
      if (kind != OpKind::kSend) written.push_back(output);
      operation.input = move(pair_of(pairs, operation.input), operation.input);
      operation.output = move(output, operation.output);
    }
    return follow(Starter::pass_on(inner_, on_device(std::move(launch))), std::move(written));
  }

  Launch on_device(Launch launch) const {
    launch.device = device_;
    return launch;
  }

  /// Waits for `inner` in the background, then copies its results back.
  Work follow(const Work& inner, std::vector<Pair> written) {
    auto work = std::make_shared<WorkState>();
    const std::lock_guard guard(lock_);
    threads_.emplace_back([inner, work, written = std::move(written)] {
      try {
        inner.synchronize();
        for (const Pair& pair : written) pair.here.copy_(pair.there);
        work->finish(nullptr);
      } catch (...) {
        work->finish(std::current_exception());
      }
    });
    return Work(std::move(work));
  }

  /// The largest tensor that contains an address, so that in-place operations stay in place.
  static const Pair& pair_of(const std::vector<Pair>& pairs, const void* address) {
    const auto* const at = static_cast<const char*>(address);
    const Pair* found = nullptr;
    for (const Pair& pair : pairs) {
      const auto* const start = static_cast<const char*>(pair.here.data());
      const bool holds = start == at || (start < at && at < start + pair.here.nbytes());
      if (holds && (found == nullptr || found->here.nbytes() < pair.here.nbytes())) found = &pair;
    }
    return *found;
  }
  static void* move(const Pair& pair, const void* address) {
    const auto* const start = static_cast<const char*>(pair.here.data());
    return static_cast<char*>(pair.there.data()) + (static_cast<const char*>(address) - start);
  }

  std::unique_ptr<ProcessGroup> owned_;
  ProcessGroup& inner_;
  const Device device_;
  std::mutex lock_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<ProcessGroup> staged_group(std::unique_ptr<ProcessGroup> inner, Device device) {
  ProcessGroup& group = *inner;
  return std::make_unique<StagedGroup>(std::move(inner), group, device);
}

std::unique_ptr<ProcessGroup> staged_group(ProcessGroup& inner, Device device) {
  return std::make_unique<StagedGroup>(nullptr, inner, device);
}

}  // namespace lockstep::dist
