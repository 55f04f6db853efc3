#include "train/run/elastic.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "configs/run.pb.h"
#include "core/base/error.h"
#include "core/base/json_line.h"
#include "core/base/log_text.h"
#include "core/base/parse_number.h"
#include "dist/group/failure.h"
#include "dist/rendezvous/rank_list.h"
#include "train/report/metrics.h"
#include "train/step_share.h"

namespace lockstep::train {

namespace {

using Present = std::vector<dist::RollCall::Present>;

/// Errors that all ranks have alike, and requests to stop, end a run on all of them.
bool is_loss(const std::exception& error) {
  return dynamic_cast<const PeerLostError*>(&error) != nullptr ||
         dynamic_cast<const TimeoutError*>(&error) != nullptr ||
         dynamic_cast<const BackendError*>(&error) != nullptr;
}

std::vector<int64_t> steps_of(const Present& present) {
  std::vector<int64_t> steps;
  for (const auto& each : present) steps.push_back(parse_number<int64_t>(each.told).value_or(-1));
  return steps;
}

std::string obstacle_of_number(const Survivor& survivor, int before, int left) {
  const config::RunConfig& config = survivor.config;
  const int64_t fewest = config.parallel().elastic().min_ranks();
  if (left < fewest) {
    return fmt::format("{} of {} ranks are left, and parallel.elastic.min_ranks is {}", left,
                       before, fewest);
  }
  if (left == 1 && config.audit().every_steps() > 0) {
    return "one rank is left, and audit.every_steps needs another one";
  }
  config::TrainConfig train = config.train();
  train.set_micro_batch_size(survivor.micro_batch_size);
  try {
    if (share_of_step(train, 0, left).micro_batch_size == survivor.micro_batch_size) return "";
  } catch (const ConfigError&) {
    // They cannot share a step at all.
  }
  return fmt::format("{} ranks cannot share the steps of {} (train.batch_size, train.leaves)", left,
                     before);
}

std::string obstacle(const Survivor& survivor, int before, const Present& present) {
  const auto left = static_cast<int>(present.size());
  std::string why = obstacle_of_number(survivor, before, left);
  if (!why.empty()) return why;
  const int64_t most = std::ranges::max(steps_of(present));
  if (most < 0) return "no rank that is left has the state of a whole step";
  return present.front().rank == 0 ? "" : survivor.take_lead(most);
}

int source_of(const std::vector<int64_t>& steps) {
  const auto most = std::ranges::max_element(steps);
  const bool are_alike = std::ranges::count(steps, *most) == std::ssize(steps);
  return are_alike ? -1 : static_cast<int>(most - steps.begin());
}

/// Fills in who is not among the present.
void add_lost(RankLoss& loss, const Present& present, const std::vector<std::string>& hosts) {
  loss.ranks = static_cast<int>(hosts.size());
  loss.left = static_cast<int>(present.size());
  for (int rank = 0; rank < loss.ranks; ++rank) {
    if (std::ranges::find(present, rank, &dist::RollCall::Present::rank) != present.end()) continue;
    loss.lost.push_back(rank);
    loss.hosts.push_back(hosts[static_cast<size_t>(rank)]);
  }
}

}  // namespace

std::string loss_text(const RankLoss& loss) {
  const std::set<std::string> hosts(loss.hosts.begin(), loss.hosts.end());
  return fmt::format("{} on host{} {} {} lost", dist::rank_list(loss.lost),
                     hosts.size() == 1 ? "" : "s", fmt::join(hosts, ", "),
                     loss.lost.size() == 1 ? "is" : "are");
}

bool meet_again(ElasticRun* elastic, const Survivor& survivor, const std::exception& error,
                CarriedRun& carried) noexcept {
  if (elastic == nullptr || elastic->members == nullptr) return false;
  std::string why;
  try {
    if (is_loss(error)) {
      RankLoss loss;
      loss.at = fmt::format("{:%Y-%m-%dT%H:%M:%S%z}", fmt::localtime(std::time(nullptr)));
      const auto before = static_cast<int>(elastic->members->hosts().size());
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
          std::chrono::duration<double>(survivor.config.parallel().elastic().wait_seconds()));
      dist::Members::Outcome outcome =
          elastic->members->meet({.told = fmt::format("{}", survivor.steps),
                                  .wait = wait,
                                  .obstacle = [&](const Present& present) {
                                    return obstacle(survivor, before, present);
                                  }});
      why = std::move(outcome.why);
      if (outcome.met) {
        add_lost(loss, outcome.met->present, elastic->members->hosts());
        carried.steps = survivor.steps;
        carried.source = source_of(steps_of(outcome.met->present));
        carried.loss = std::move(loss);
        elastic->met = std::move(outcome.met);
        return true;
      }
    }
  } catch (const std::exception& failure) {
    why = failure.what();
  }
  elastic->members->leave();
  if (!why.empty()) {
    write_log(stderr, fmt::format("the ranks that are left do not go on by themselves: {}\n", why));
  }
  return false;
}

bool meet_again(ElasticRun& elastic, const config::RunConfig& config,
                const std::exception& error) noexcept {
  if (!elastic.carried || elastic.carried->trainer.task == nullptr) return false;
  CarriedRun& carried = *elastic.carried;
  const Survivor survivor{
      .config = config, .steps = carried.steps, .take_lead = [&](int64_t) -> std::string {
        return carried.lock ? "" : "the rank that was to lead is lost as well";
      }};
  return meet_again(&elastic, survivor, error, carried);
}

void note_loss(const RunDirectory& directory, const RankLoss& loss, int64_t step,
               int64_t resumed_from, std::optional<double> seconds) noexcept {
  try {
    JsonLine line;
    line.add("at", loss.at)
        .add("cause", fmt::format("{} {} lost", dist::rank_list(loss.lost),
                                  loss.lost.size() == 1 ? "is" : "are"));
    if (!loss.lost.empty()) line.add("rank", loss.lost.front());
    if (loss.lost.size() > 1) line.add("lost", dist::rank_list(loss.lost));
    if (!loss.hosts.empty()) line.add("host", loss.hosts.front());
    line.add("ranks", loss.ranks)
        .add("ranks_left", loss.left)
        .add("step_lost", step)
        .add("resumed_from", resumed_from)
        .add("steps_again", std::max<int64_t>(0, step - resumed_from))
        .add("restart", 0);
    if (seconds) {
      line.add("training_again_s", *seconds);
    } else {
      line.add_null("training_again_s");
    }
    MetricsWriter file(directory.restarts());
    file.write(line);
    file.close();
  } catch (const std::exception&) {
    // A report must not end a run.
  }
}

}  // namespace lockstep::train
