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
#include "dist/group/failure.h"
#include "dist/rendezvous/rank_list.h"
#include "train/report/metrics.h"
#include "train/run/successor.h"
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
  for (const auto& each : present) steps.push_back(StateTold::of(each.told).steps);
  return steps;
}

std::string obstacle_of_number(const config::RunConfig& config, int64_t micro_batch_size,
                               int before, int left) {
  const int64_t fewest = config.parallel().elastic().min_ranks();
  if (left < fewest) {
    return fmt::format("{} of {} ranks are left, and parallel.elastic.min_ranks is {}", left,
                       before, fewest);
  }
  if (left == 1 && config.audit().every_steps() > 0) {
    return "one rank is left, and audit.every_steps needs another one";
  }
  config::TrainConfig train = config.train();
  train.set_micro_batch_size(micro_batch_size);
  try {
    if (share_of_step(train, 0, left).micro_batch_size == micro_batch_size) return "";
  } catch (const ConfigError&) {
    // They cannot share a step at all.
  }
  return fmt::format("{} ranks cannot share the steps of {} (train.batch_size, train.leaves)", left,
                     before);
}

std::string obstacle(const Survivor& survivor, const Regrouping& regrouping,
                     const Present& present) {
  auto [why, most] = regrouping.obstacle(present);
  if (!why.empty()) return std::move(why);
  return present.front().rank == 0 ? "" : survivor.take_lead(most);
}

std::string hosts_text(const std::vector<std::string>& names) {
  const std::set<std::string> hosts(names.begin(), names.end());
  return fmt::format("host{} {}", hosts.size() == 1 ? "" : "s", fmt::join(hosts, ", "));
}

}  // namespace

JoinRequest::JoinRequest(std::vector<std::string> places)
    : DistError("[train] the ranks left their group to meet again with processes that join them."),
      places_(std::move(places)) {}

int source_of(const Present& present) {
  const std::vector<int64_t> steps = steps_of(present);
  const auto most = std::ranges::max_element(steps);
  const bool are_alike = std::ranges::count(steps, *most) == std::ssize(steps);
  return are_alike ? -1 : static_cast<int>(most - steps.begin());
}

void add_present(WorldChange& change, int ranks, const std::vector<std::string>& hosts,
                 const dist::Members::Met& met) {
  const auto is_among = [](const Present& list, int number) {
    return std::ranges::find(list, number, &dist::RollCall::Present::rank) != list.end();
  };
  change.ranks = ranks;
  change.left = static_cast<int>(met.present.size());
  for (int number = 0; number < std::ssize(hosts); ++number) {
    const bool goes_on = is_among(met.present, number);
    const bool waits = is_among(met.left_out, number);
    const std::string& host = hosts[static_cast<size_t>(number)];
    if (number >= ranks && goes_on) change.joined_hosts.push_back(host);
    if (number < ranks && waits) change.waiting.push_back(number);
    if (number >= ranks || goes_on || waits) continue;
    change.lost.push_back(number);
    change.hosts.push_back(host);
  }
}

int ranks_of_a_model(const config::RunConfig& config) {
  const bool is_hybrid = config.parallel().strategy() == config::ParallelConfig::HYBRID_SHARD;
  return is_hybrid ? static_cast<int>(std::max<int64_t>(config.parallel().shard_size(), 1)) : 1;
}

Arrangement Regrouping::arrangement(const Present& came) const {
  return arrange_groups(came, ranks_, ranks_of_a_model(config_), [this](int left) {
    return obstacle_of_number(config_, micro_batch_size_, ranks_, left);
  });
}

std::function<std::vector<size_t>(const Present&)> Regrouping::arrange() const {
  if (ranks_of_a_model(config_) == 1) return {};
  return [regrouping = *this](const Present& came) { return regrouping.arrangement(came).places; };
}

std::pair<std::string, int64_t> Regrouping::obstacle(const Present& came) const {
  if (ranks_of_a_model(config_) > 1) {
    Arrangement arranged = arrangement(came);
    return {std::move(arranged.why), arranged.steps};
  }
  std::string why = obstacle_of_number(config_, micro_batch_size_, ranks_, std::ssize(came));
  const int64_t most = std::ranges::max(steps_of(came));
  if (why.empty() && most < 0) why = "no rank that is left has the state of a whole step";
  return {std::move(why), most};
}

bool Regrouping::add_sources(CarriedRun& carried, const StateTold& own,
                             const dist::Members::Met& met) const {
  carried.steps = own.steps;
  if (ranks_of_a_model(config_) == 1) {
    carried.source = source_of(met.present);
    return false;
  }
  Present came = met.present;
  came.insert(came.end(), met.left_out.begin(), met.left_out.end());
  std::ranges::sort(came, {}, &dist::RollCall::Present::rank);
  Arrangement arranged = arrangement(came);
  carried.source = arranged.moves_parts() ? 0 : -1;
  const bool has_part = arranged.sources[static_cast<size_t>(met.rank)] < 0;
  carried.part_sources = std::move(arranged.sources);
  carried.steps = has_part ? arranged.steps : -1;
  return has_part && own.steps != arranged.steps;
}

int count_to_call(const config::RunConfig& config, int ranks, int most, int ready,
                  int64_t micro_batch_size) {
  const int together = ranks_of_a_model(config);
  if (ranks % together != 0) return 0;  // a rank that is alone has the whole model
  int count = std::max(0, std::min(ready, most - ranks)) / together * together;
  while (count > 0 && !obstacle_of_number(config, micro_batch_size, ranks, ranks + count).empty()) {
    count -= together;
  }
  return count;
}

std::string change_text(const WorldChange& change) {
  std::vector<std::string> parts;
  if (!change.lost.empty()) {
    parts.push_back(fmt::format("{} on {} {} lost", dist::rank_list(change.lost),
                                hosts_text(change.hosts), change.lost.size() == 1 ? "is" : "are"));
  }
  if (!change.waiting.empty()) {
    parts.push_back(fmt::format("{} wait{} for others to keep a model with",
                                dist::rank_list(change.waiting),
                                change.waiting.size() == 1 ? "s" : ""));
  }
  if (const size_t count = change.joined_hosts.size(); count > 0) {
    parts.push_back(fmt::format("{} rank{} on {} {} joined", count, count == 1 ? "" : "s",
                                hosts_text(change.joined_hosts), count == 1 ? "has" : "have"));
  }
  return parts.empty() ? "nobody has joined" : fmt::format("{}", fmt::join(parts, ", "));
}

bool meet_again(ElasticRun* elastic, const Survivor& survivor, const std::exception& error,
                CarriedRun& carried) noexcept {
  if (elastic == nullptr || elastic->members == nullptr) return false;
  const auto* const request = dynamic_cast<const JoinRequest*>(&error);
  if (elastic->members->size() == 1 && request == nullptr) return false;
  std::string why;
  try {
    if (request != nullptr) elastic->members->expect(request->places());
    if (is_loss(error) || request != nullptr) {
      WorldChange change;
      change.at = fmt::format("{:%Y-%m-%dT%H:%M:%S%z}", fmt::localtime(std::time(nullptr)));
      const auto before = elastic->members->size();
      const Regrouping regrouping(survivor.config, survivor.micro_batch_size, before);
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
          std::chrono::duration<double>(survivor.config.parallel().elastic().wait_seconds()));
      dist::Members::Outcome outcome = elastic->members->meet(
          {.told = survivor.state.text(),
           .wait = wait,
           .obstacle =
               [&](const Present& present) { return obstacle(survivor, regrouping, present); },
           .arrange = regrouping.arrange()});
      why = std::move(outcome.why);
      if (outcome.is_left_out) {
        elastic->is_spare = true;
        elastic->doors = elastic->members->doors();
        elastic->members.reset();  // the others do not find this rank any more
        return true;
      }
      if (outcome.met) {
        add_present(change, before, elastic->members->hosts(), *outcome.met);
        const bool finishes = regrouping.add_sources(carried, survivor.state, *outcome.met);
        if (finishes) survivor.finish_step();
        if (carried.successor && !carried.lock) {
          carried.directory = carried.successor->directory();
          carried.lock = carried.successor->release_lock();  // if this rank leads now
        }
        carried.change = std::move(change);
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

std::string take_lead(CarriedRun& carried, int64_t most) {
  if (carried.lock) return "";
  return carried.successor ? carried.successor->take_lead(most)
                           : "the rank that was to lead is lost as well";
}

bool meet_again(ElasticRun& elastic, const config::RunConfig& config,
                const std::exception& error) noexcept {
  if (!elastic.carried || elastic.carried->trainer.task == nullptr) return false;
  CarriedRun& carried = *elastic.carried;
  const Survivor survivor{.config = config,
                          .state = {.steps = carried.steps, .part = carried.trainer.part},
                          .micro_batch_size = carried.trainer.micro_batch_size,
                          .take_lead = [&](int64_t most) { return take_lead(carried, most); }};
  return meet_again(&elastic, survivor, error, carried);
}

void note_change(const RunDirectory& directory, const WorldChange& change, int64_t step,
                 int64_t resumed_from, std::optional<double> seconds) noexcept {
  try {
    JsonLine line;
    line.add("at", change.at).add("cause", change_text(change));
    if (!change.lost.empty()) line.add("rank", change.lost.front());
    if (change.lost.size() > 1) line.add("lost", dist::rank_list(change.lost));
    if (!change.waiting.empty()) {
      line.add("ranks_waiting", static_cast<int64_t>(change.waiting.size()));
    }
    if (!change.hosts.empty()) line.add("host", change.hosts.front());
    if (!change.joined_hosts.empty()) {
      line.add("ranks_joined", static_cast<int64_t>(change.joined_hosts.size()));
      line.add("state_sent", change.state_sent);
    }
    line.add("ranks", change.ranks)
        .add("ranks_left", change.left)
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
