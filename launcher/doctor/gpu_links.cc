#include "launcher/doctor/gpu_links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/base/service_thread.h"
#include "core/cuda/device_facts.h"
#include "core/cuda/peer.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/stream.h"
#include "dist/group/thread_group.h"
#include "dist/nccl/nccl_group.h"
#include "launcher/cuda_libraries.h"
#include "launcher/doctor/device_rates.h"

namespace lockstep::launcher {

namespace {

using train::Check;
using train::Health;

constexpr double kSecondsACopy = 0.05;

/// Seconds that an all_reduce of the tensor takes: the best of a few.
double all_reduce_seconds(dist::ProcessGroup& group, const Tensor& tensor) {
  const Stream stream = current_stream(tensor.device());
  double best = 0;
  for (int i = -2; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    group.all_reduce(tensor).wait();
    stream.synchronize();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    // The first ones connect the ranks.
    if (i == 0 || (i > 0 && taken.count() < best)) best = taken.count();
  }
  return best;
}

/// Bytes a second of every link of a ring, as nccl-tests count them ("busbw").
double bus_rate(double bytes, double seconds, size_t ranks) {
  const auto n = static_cast<double>(ranks);
  return 2 * (n - 1) / n * bytes / seconds;
}

using Library = std::shared_ptr<const dist::NcclLibrary>;
using Gpus = std::vector<std::shared_ptr<const dist::NcclDevice>>;

/// Seconds that an all_reduce takes on the rank where it takes longest.
double slowest_all_reduce(const Library& library, const Gpus& gpus, int64_t bytes) {
  dist::NcclOptions options;
  options.start_timeout = std::chrono::seconds(30);
  std::vector<double> seconds(gpus.size());
  std::vector<std::exception_ptr> errors(gpus.size());
  // The groups of GPUs talk through them until NCCL has connected them.
  auto communicators = dist::thread_communicators(static_cast<int>(gpus.size()));
  const auto run_rank = [&](size_t rank) {
    const NoGradGuard no_grad;
    const Device device = gpus[rank]->device();
    const StreamGuard own_stream(get_stream_from_pool(device));
    const auto group =
        dist::nccl_group(std::move(communicators[rank]), library, gpus[rank], options);
    group->set_timeout(std::chrono::seconds(30));
    seconds[rank] = all_reduce_seconds(*group, zeros({bytes / 4}, {DType::kF32, device}));
  };
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < gpus.size(); ++rank) {
    threads.push_back(start_thread("doctor's rank", [&, rank] {
      try {
        run_rank(rank);
      } catch (const std::exception&) {
        errors[rank] = std::current_exception();
      }
    }));
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return *std::ranges::max_element(seconds);
}

}  // namespace

std::vector<Check> peer_checks(Device from, const std::vector<Device>& all, PeerCopies& copies) {
  Check check{to_string(from) + " peers", Health::kOk, "", ""};
  for (const Device to : all) {
    if (to == from) continue;
    const bool direct = cuda::reaches_peer(from.index, to.index);
    if (direct) {
      cuda::open_peer(from.index, to.index);
    } else {
      copies.all_direct = false;
      check.health = Health::kWarn;
      check.advice =
          "Copies that are not direct go through the cpu's memory. nvidia-smi topo -p2p r tells "
          "why; access control of PCIe (ACS) and IOMMUs of virtual machines forbid them.";
    }
    const MeasuredRate measured = peer_rate(from, to, kSecondsACopy);
    copies.slowest = std::min(copies.slowest.value_or(measured.per_second), measured.per_second);
    check.found +=
        fmt::format("{}{:.3g} GB/s to {}{}", check.found.empty() ? "" : ", ",
                    measured.per_second / 1e9, to_string(to), direct ? "" : " (not direct)");
  }
  return {check};
}

std::string nccl_ways(const std::vector<Device>& all) {
  const auto is = [](const char* name, std::string_view value) {
    const char* const set = std::getenv(name);
    return set != nullptr && set == value;
  };
  const bool multicast = std::ranges::all_of(
      all, [](Device device) { return cuda::device_facts(device.index).multicast; });
  std::string text = is("NCCL_NVLS_ENABLE", "0") ? "NVLS off"
                     : multicast                 ? "NVLS possible"
                                                 : "no NVLS on these GPUs";
  text += is("NCCL_PXN_DISABLE", "1") ? ", PXN off" : ", PXN possible";
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    if (std::string_view(*each).starts_with("NCCL_")) variables.emplace_back(*each);
  }
  std::ranges::sort(variables);
  return variables.empty() ? text : fmt::format("{} ({})", text, fmt::join(variables, " "));
}

std::vector<Check> nccl_checks(const std::vector<Device>& all, const PeerCopies& copies) {
  Check check{"NCCL", Health::kOk, "", ""};
  std::shared_ptr<const dist::NcclLibrary> library;
  std::vector<std::shared_ptr<const dist::NcclDevice>> gpus;
  try {
    library = dist::load_nccl(nccl_file());
    for (const Device device : all) gpus.push_back(std::make_shared<dist::NcclDevice>(device));
  } catch (const Error& error) {
    check.health = Health::kWarn;
    check.found =
        "cannot be used, so that sums go through the memory of the cpu; " + nccl_ways(all);
    check.advice = error.what();
    return {check};
  }
  constexpr int64_t kBytes = int64_t{256} << 20;
  const double seconds = slowest_all_reduce(library, gpus, kBytes);
  const double rate = bus_rate(static_cast<double>(kBytes), seconds, all.size());
  check.found = fmt::format(
      "{}: all_reduce over {} GPUs at {:.3g} GB/s of each link (256 MiB in {:.3g} ms); {}",
      dist::nccl_version_text(library->version), all.size(), rate / 1e9, seconds * 1e3,
      nccl_ways(all));
  if (copies.all_direct && copies.slowest && rate < *copies.slowest / 2) {
    check.health = Health::kWarn;
    check.advice = fmt::format(
        "The driver copies between any two at {:.3g} GB/s or more. NCCL_DEBUG=INFO tells which "
        "ways NCCL takes.",
        *copies.slowest / 1e9);
  }
  return {check};
}

}  // namespace lockstep::launcher
