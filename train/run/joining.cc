#include "train/run/joining.h"

#include <fmt/format.h>

#include <utility>

#include "configs/annotated_text.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/device/arithmetic_facts.h"
#include "dist/group/tcp_group.h"
#include "dist/rendezvous/newcomer.h"
#include "train/build.h"
#include "train/joining/part_taker.h"
#include "train/joining/state_taker.h"
#include "train/run/replicas.h"

namespace lockstep::train {

namespace {

/// Attempts to meet the ranks, each of which makes them wait.
constexpr int kMostTries = 3;

/// What is compared before the model is built.
std::vector<dist::JoinFact> facts_of(const config::RunConfig& config, const std::string& alike) {
  std::vector<dist::JoinFact> facts = {{"start", dist::told_at_start(alike)},
                                       {"config", lines_of(config)}};
  if (config.reproducibility() == config::BITWISE || config.audit().every_steps() > 0) {
    std::string text;
    for (const ArithmeticFact& fact : arithmetic_facts(device_of(config))) {
      text += fmt::format("{}: {}\n", fact.name, fact.value);
    }
    facts.push_back({"arithmetic", text});
  }
  return facts;
}

std::vector<dist::JoinFact> facts_of(Task& task) {
  return {{"model", Replicas::text_of(task.model())},
          {"hash of its data", task.data_identity().hex()}};
}

/// Model, data and optimizer of a process that takes its state from the ranks.
Trainer::Legacy build(const config::RunConfig& config, int64_t micro_batch_size) {
  config::RunConfig built = config;
  built.mutable_model()->set_weights("");
  built.mutable_train()->set_micro_batch_size(micro_batch_size);
  if (const int together = ranks_of_a_model(config); together > 1) {
    // Without weights, of which this process will keep a part.
    Trainer::Legacy legacy;
    legacy.task = build_task(built, share_of_step(built.train(), 0, together));
    legacy.micro_batch_size = micro_batch_size;
    return legacy;
  }
  const auto share = share_of_step(built.train(), nullptr);
  Trainer::Legacy legacy = Trainer::create(built, build_task(built, share)).leave();
  legacy.micro_batch_size = micro_batch_size;
  return legacy;
}

std::string waiting_text(int64_t ranks, int64_t most, int together) {
  if (ranks < most && together > 1) {
    return fmt::format(
        "the run has {} ranks, in groups of {}: joining at the end of a step, once there are so "
        "many",
        ranks, together);
  }
  if (ranks >= most) {
    return fmt::format("the run has {} ranks, and may have {}: waiting until one is lost", ranks,
                       most);
  }
  return fmt::format("the run has {} rank{}: joining at the end of a step", ranks,
                     ranks == 1 ? "" : "s");
}

}  // namespace

std::string lines_of(const config::RunConfig& config) {
  std::string text;
  for (const config::Difference& field : config::differences(config, {})) {
    text += fmt::format("{}: {}\n", field.path, field.a);
  }
  return text;
}

std::unique_ptr<dist::Door> open_door(const config::RunConfig& config,
                                      const dist::Members::Start& start, Trainer& trainer,
                                      int most) {
  return std::make_unique<dist::Door>(
      dist::DoorOptions{.address = start.door,
                        .job = start.where.job,
                        .secret = start.where.secret,
                        .early = facts_of(config, start.alike),
                        .late = facts_of(trainer.task()),
                        .terms = {trainer.share().micro_batch_size, most}});
}

std::optional<dist::JoinEnd> join_run(const config::RunConfig& config,
                                      const dist::Members::Start& start,
                                      std::chrono::milliseconds limit,
                                      const std::function<void(const std::string&)>& tell,
                                      ElasticRun& elastic) {
  CarriedRun carried;
  elastic.part_doors.clear();  // of a rank that gives nothing any more
  if (elastic.carried) {
    // What this process was given when it was a rank does not go on from there.
    carried.trainer = std::move(elastic.carried->trainer);
    elastic.carried.reset();
  }
  const int together = ranks_of_a_model(config);
  std::string why;
  std::vector<std::string> doors = std::exchange(elastic.doors, {});  // of those that may lead
  for (int tries = 0; tries < kMostTries;) {
    dist::Newcomer newcomer({.address = start.door,
                             .doors = doors,
                             .job = start.where.job,
                             .secret = start.where.secret,
                             .facts = facts_of(config, start.alike),
                             .host_may_come = start.where.host_may_come,
                             .limit = limit});
    LS_CHECK(newcomer.terms().size() == 2 && newcomer.terms()[0] > 0, DistError,
             "[join] the leader at {} does not say how large micro-batches are.", start.door);
    const int64_t micro_batch_size = newcomer.terms()[0];
    elastic.most = static_cast<int>(newcomer.terms()[1]);
    if (carried.trainer.task == nullptr || carried.trainer.micro_batch_size != micro_batch_size) {
      carried.trainer = build(config, micro_batch_size);
    }
    carried.trainer.part = -1;  // it has none that goes on from where the ranks are
    carried.trainer.parts.clear();
    std::optional<StateTaker> taker;
    std::optional<PartTaker> part_taker;
    if (together == 1) taker.emplace(config, carried.trainer);
    dist::OpenPort port(dist::Members::is_local(start.door));
    std::optional<dist::Newcomer::Call> call;
    bool takes = false;
    const auto take = [&](const std::string& part) {
      if (!std::exchange(takes, true)) tell("taking the state while the ranks train");
      if (taker) return taker->take(part);
      part_taker.reset();  // what it has taken is of no use any more
      part_taker.emplace(config,
                         PartTaker::Options{.shard_size = together, .source = PartSource::of(part)},
                         carried.trainer);
    };
    try {
      const auto outcome = newcomer.wait(
          dist::Members::place_of(port), facts_of(*carried.trainer.task),
          [&](int64_t ranks, int64_t most) { tell(waiting_text(ranks, most, together)); }, take);
      if (!outcome.call) return outcome.end;
      call = outcome.call;
    } catch (const PeerLostError&) {
      doors = newcomer.doors();
      tell("the leader of the run is lost: looking for the one that takes its place");
      continue;
    }
    dist::Members members(start, call->number, std::move(port), std::move(call->texts));
    const Regrouping regrouping(config, micro_batch_size, members.size());
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
        std::chrono::duration<double>(config.parallel().elastic().wait_seconds()));
    StateTold own{.steps = taker ? taker->steps() : -1};
    if (part_taker) own.steps = part_taker->finish(wait / 2);
    own.part = carried.trainer.part;
    dist::Members::Outcome outcome = members.meet(
        {.told = own.text(),
         .wait = wait,
         .obstacle = [](const auto&) { return "the ranks that trained cannot be reached"; },
         .arrange = regrouping.arrange()});
    if (outcome.is_left_out) {
      doors = members.doors();
      tell("a process that was called as well is lost: waiting for another one");
      continue;
    }
    ++tries;
    if (outcome.met) {
      add_present(carried.change, members.size(), members.hosts(), *outcome.met);
      (void)regrouping.add_sources(carried, own, *outcome.met);
      if (taker) carried.last = taker->last();
      if (part_taker) carried.last = part_taker->last();
      elastic.met = std::move(outcome.met);
      elastic.carried = std::move(carried);
      return std::nullopt;
    }
    why = outcome.why;
    tell(fmt::format("the ranks of the run have not met this process: {}", why));
  }
  throw DistError(
      fmt::format("[join] {} times the ranks of the run at {} have called this process and not met "
                  "it: {}. Every "
                  "host must reach all ports of the others.",
                  kMostTries, start.door, why));
}

}  // namespace lockstep::train
