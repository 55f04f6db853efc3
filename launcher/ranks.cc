#include "launcher/ranks.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "core/check.h"
#include "core/parallel.h"
#include "dist/core_budget.h"
#include "dist/mpi_group.h"

namespace lockstep::launcher {

Ranks join_ranks(const std::filesystem::path& flight_folder) {
  Ranks ranks;
  ranks.environment = dist::rank_environment([](const char* name) { return std::getenv(name); });
  const dist::RankEnvironment& told = ranks.environment;
  if (told.size == 1) return ranks;
  const auto tell = [rank = told.rank](const std::string& line) {
    fmt::print(stderr, "rank {}: {}\n", rank, line);
  };
  ranks.group = dist::mpi_group({.flight_folder = flight_folder, .on_delay = tell});
  LS_CHECK(ranks.group->size() == told.size && ranks.group->rank() == told.rank, ConfigError,
           "[launch] {} of the ranks: expected what MPI says, rank {} of {}. Start the ranks with "
           "`lockstep launch`, mpirun or srun.",
           dist::to_string(told), ranks.group->rank(), ranks.group->size());
  return ranks;
}

void set_time_limit(const Ranks& ranks, double seconds) {
  if (ranks.group == nullptr) return;
  ranks.group->set_timeout(
      std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds)));
}

void share_cores(const Ranks& ranks, int wanted_threads) {
  if (wanted_threads > 0) return set_num_threads(wanted_threads);
  if (ranks.group == nullptr) return;
  const dist::CoreBudget budget = dist::core_budget();
  const int local_size = ranks.environment.local_size.value_or(1);
  const int threads = dist::threads_for_rank(budget, local_size);
  set_num_threads(threads);
  if (ranks.leads()) {
    fmt::print(stderr, "{}\n", dist::describe_threads(threads, budget, local_size));
  }
}

}  // namespace lockstep::launcher
