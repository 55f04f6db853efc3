#include "launcher/ranks.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/program_variables.h"
#include "configs/run.pb.h"
#include "configs/variables.h"
#include "core/base/check.h"
#include "core/base/environment_flag.h"
#include "core/base/log_text.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "core/cuda/hang_watch.h"
#include "core/device/device_runtime.h"
#include "dist/group/agreement.h"
#include "dist/group/mpi_group.h"
#include "dist/group/tcp_group.h"
#include "dist/group/transport_group.h"
#include "dist/nccl/nccl_group.h"
#include "dist/rendezvous/core_budget.h"
#include "dist/rendezvous/rendezvous.h"
#include "dist/rendezvous/socket.h"
#include "dist/transport/mpi_transport.h"
#include "launcher/cuda_libraries.h"
#include "launcher/exit_code.h"
#include "train/gradient_options.h"

namespace lockstep::launcher {

namespace {

/// Returns why the ranks cannot use NCCL together, or "". `texts`, by rank, are "+" and
/// NcclDevice's name of the rank's GPU, or "-" and the reason why it has none.
std::string obstacle(const std::vector<std::string>& texts) {
  std::map<std::string_view, size_t> owners;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    const std::string_view text = texts[rank];
    if (text.starts_with('-')) return fmt::format("rank {}: {}", rank, text.substr(1));
    const auto [owner, is_new] = owners.emplace(text, rank);
    if (!is_new) return fmt::format("ranks {} and {} share a GPU", owner->second, rank);
  }
  return "";
}

void use_nccl(Ranks& ranks, Device device, dist::NcclOptions options) {
  // Groups made of this one tell it, too.
  const auto told = std::make_shared<std::atomic<bool>>(false);
  options.on_no_buffers = [told](const std::string& reason) {
    if (told->exchange(true)) return;
    write_log(stderr, fmt::format("parallel.nccl.user_buffers has no effect: {}\n", reason));
  };
  std::shared_ptr<const dist::NcclLibrary> library;
  std::shared_ptr<const dist::NcclDevice> gpu;
  std::string text;
  try {
    library = dist::load_nccl(nccl_file());
    gpu = std::make_shared<dist::NcclDevice>(device);
    text = "+" + gpu->identity();
  } catch (const Error& error) {
    text = fmt::format("-{}", error.what());
  }
  const std::string why = obstacle(dist::all_gather_texts(*ranks.group, text));
  if (why.empty()) {
    ranks.group =
        dist::nccl_group(ranks.communicator, std::move(ranks.group), library, gpu, options);
  } else if (ranks.leads()) {
    write_log(stderr,
              fmt::format("gradients go through the memory of the cpu, not by NCCL: {}\n", why));
  }
}

}  // namespace

bool uses_mpi(const dist::RankEnvironment& environment) {
  const std::string_view wanted = environment_choice("LOCKSTEP_TRANSPORT", {"mpi", "tcp"});
  if (!wanted.empty()) return wanted == "mpi";
  return environment.under_mpi && dist::has_mpi();
}

namespace {

struct Start {
  std::string alike;
  std::chrono::milliseconds silence;
};

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

Start what_to_start(double silence_seconds) {
  return {.alike = config::values_alike_on_ranks(config::process_variables()),
          .silence = milliseconds_of(silence_seconds)};
}

/// Options of a rank that prints its number before what it says.
dist::Communicator::Options options_of(const std::string& rank) {
  return {.flight_folder = {}, .on_delay = [rank](const std::string& line) {
            write_log(stderr, fmt::format("rank {}: {}\n", rank, line));
          }};
}

void join_by_mpi(Ranks& ranks, const Start& start) {
  const dist::RankEnvironment& told = ranks.environment;
  LS_CHECK(told.numbered, ConfigError,
           "[launch] MPI numbers the ranks: expected no --ranks without --rank with "
           "LOCKSTEP_TRANSPORT=mpi. Unset one of them.");
  ranks.communicator =
      dist::mpi_communicator(options_of(fmt::format("{}", told.rank)), start.alike, start.silence);
  ranks.group = dist::transport_group(ranks.communicator, "mpi");
  LS_CHECK(
      ranks.group->size() == told.size && ranks.group->rank() == told.rank, ConfigError,
      "[launch] {} of the ranks: expected what MPI says, rank {} of {}. Start the ranks with "
      "`lockstep launch`, mpirun, or `srun --mpi=pmix`: without that option each rank is alone; or "
      "set LOCKSTEP_TRANSPORT=tcp.",
      dist::to_string(told), ranks.group->rank(), ranks.group->size());
}

dist::Members::Start members_start(dist::Rendezvous where, const Start& start) {
  std::string door = where.address;
  return {.where = std::move(where),
          .options = [](int rank) { return options_of(fmt::format("{}", rank)); },
          .alike = start.alike,
          .silence = start.silence,
          .door = std::move(door)};
}

dist::Rendezvous where_to_meet(const dist::RankEnvironment& environment) {
  const char* const secret = std::getenv("LOCKSTEP_JOB_SECRET");
  return dist::rendezvous_of(environment, secret == nullptr ? "" : secret);
}

void join_by_tcp(Ranks& ranks, const Start& start, bool elastic) {
  dist::RankEnvironment& told = ranks.environment;
  dist::Rendezvous where = where_to_meet(told);
  where.frees_address = elastic;
  dist::RankPlace place;
  ranks.communicator =
      dist::tcp_communicator(where, options_of(told.numbered ? fmt::format("{}", told.rank) : "?"),
                             start.alike, start.silence, &place);
  ranks.group = dist::transport_group(ranks.communicator, "tcp");
  told.rank = ranks.group->rank();
  ranks.start = members_start(std::move(where), start);
  const int told_here = told.local_size.value_or(place.local_size);
  LS_CHECK(told_here >= place.local_size, ConfigError,
           "[launch] {} was told of {} ranks on its host ({}), but {} of the job are here: "
           "expected each host once. A host may be listed twice, or two launchers were started on "
           "it; give one the ranks of both, or set LOCKSTEP_LOCAL_RANK and "
           "LOCKSTEP_LOCAL_WORLD_SIZE.",
           dist::to_string(told), told_here, dist::host_name(), place.local_size);
  if (!told.local_rank || !told.local_size) {
    told.local_rank = place.local_rank;
    told.local_size = place.local_size;
  }
}

}  // namespace

dist::RankEnvironment this_rank(const dist::GivenRank& given) {
  return dist::rank_environment([](const char* name) { return std::getenv(name); }, given);
}

Ranks join_ranks(const dist::RankEnvironment& environment, double silence_seconds, bool elastic) {
  Ranks ranks;
  ranks.environment = environment;
  const bool has_address = !environment.master_address.empty();
  if (environment.size == 1) {
    if (elastic && has_address) ranks.start = start_of(environment, silence_seconds);
    return ranks;
  }
  if (uses_mpi(environment)) {
    join_by_mpi(ranks, what_to_start(silence_seconds));
  } else {
    join_by_tcp(ranks, what_to_start(silence_seconds), elastic);
  }
  return ranks;
}

dist::Members::Start start_of(const dist::RankEnvironment& environment, double silence_seconds) {
  return members_start(where_to_meet(environment), what_to_start(silence_seconds));
}

std::unique_ptr<dist::Members> members_of(const Ranks& ranks, int shard_size) {
  if (!ranks.start) return nullptr;
  dist::Members::Start start = *ranks.start;
  start.shard_size = shard_size;
  if (ranks.group == nullptr) return std::make_unique<dist::Members>(std::move(start));
  return std::make_unique<dist::Members>(std::move(start), *ranks.communicator, *ranks.group);
}

Ranks met_again(dist::Members::Met met, const dist::RankEnvironment& before) {
  Ranks ranks;
  ranks.environment = before;
  ranks.environment.rank = met.rank;
  ranks.environment.size = static_cast<int>(met.present.size());
  ranks.environment.local_rank = met.place.local_rank;
  ranks.environment.local_size = met.place.local_size;
  ranks.start = std::move(met.start);
  if (met.communicator == nullptr) return ranks;
  ranks.group = dist::transport_group(met.communicator, "tcp");
  ranks.communicator = std::move(met.communicator);
  return ranks;
}

void tell_errors(const Ranks& ranks, const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    if (ranks.group != nullptr) ranks.group->abort(error_text(error));
    throw;
  }
}

void assign_devices(Ranks& ranks, const config::RunConfig& config) {
  const Device named = parse_device(config.device());
  const int count = device_count(named.type);
  // If there is no device, the error is left to the first use of the device.
  if (named.type != DeviceType::kCUDA || count == 0) return;
  const bool has_number = config.device().find(':') != std::string::npos;
  const int local_rank = ranks.environment.local_rank.value_or(0);
  const int local_size = ranks.environment.local_size.value_or(1);
  const int offered = has_number ? 1 : count;
  LS_CHECK(local_size <= offered || config.parallel().share_devices(), ConfigError,
           "[device] {} ranks on this host and device: \"{}\", which is {} here: expected no more "
           "ranks than GPUs. Start fewer, or set parallel.share_devices.",
           local_size, config.device(), offered == 1 ? "one GPU" : fmt::format("{} GPUs", offered));
  if (!has_number) {
    set_own_device({DeviceType::kCUDA, static_cast<int8_t>(local_rank % count)});
  }
  if (ranks.group != nullptr) {
    use_nccl(ranks, parse_device(config.device()), train::nccl_options(config));
  }
}

struct DeviceWatch::State {
  [[noreturn]] void end(const std::string& text);

  Mutex lock;
  std::weak_ptr<dist::Communicator> communicator LS_GUARDED_BY(lock);
  int rank LS_GUARDED_BY(lock) = 0;
  int size LS_GUARDED_BY(lock) = 1;
  std::unique_ptr<cuda::HangWatch> watch;
};

void DeviceWatch::State::end(const std::string& text) {
  const DeviceError error(text);
  std::shared_ptr<dist::Communicator> others;
  std::string whose;
  {
    const MutexLock guard(lock);
    others = communicator.lock();
    if (size > 1) whose = fmt::format("rank {}: ", rank);
  }
  write_log(stderr, fmt::format("{}{}\n", whose, error_text(error)));
  if (others != nullptr) others->abort_and_leave(error_text(error));
  ::_exit(exit_code(error));
}

DeviceWatch::DeviceWatch() : state_(std::make_unique<State>()) {}
DeviceWatch::~DeviceWatch() = default;

void DeviceWatch::start(const config::RunConfig& config) {
  const Device device = parse_device(config.device());
  const double seconds = config.device_silence_seconds();
  // If there is no device, the error is left to the first use of the device.
  if (device.type != DeviceType::kCUDA || seconds == 0 || device.index >= device_count(device.type))
    return;
  state_->watch = std::make_unique<cuda::HangWatch>(
      device, milliseconds_of(seconds),
      [state = state_.get()](const std::string& text) { state->end(text); });
}

void DeviceWatch::use(const Ranks& ranks) {
  const MutexLock guard(state_->lock);
  state_->communicator = ranks.communicator;
  state_->rank = ranks.environment.rank;
  state_->size = ranks.environment.size;
}

void set_time_limit(const Ranks& ranks, double seconds) {
  if (ranks.group == nullptr) return;
  ranks.group->set_timeout(milliseconds_of(seconds));
  ranks.communicator->set_end_limit(milliseconds_of(seconds));
}

void limit_end(const Ranks& ranks, double seconds) {
  if (ranks.communicator != nullptr) ranks.communicator->set_end_limit(milliseconds_of(seconds));
}

void set_rank_threads(const Ranks& ranks, int wanted_threads) {
  if (wanted_threads > 0) return set_num_threads(wanted_threads);
  if (ranks.group == nullptr) return;
  const dist::CoreBudget budget = dist::core_budget();
  const int local_size = ranks.environment.local_size.value_or(1);
  const int threads = dist::threads_for_rank(budget, local_size);
  set_num_threads(threads);
  if (ranks.leads()) {
    write_log(stderr, fmt::format("{}\n", dist::describe_threads(threads, budget, local_size)));
  }
}

}  // namespace lockstep::launcher
