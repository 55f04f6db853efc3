#include "train/joining/part_taker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <sstream>
#include <utility>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "dist/group/planning_group.h"
#include "dist/rendezvous/newcomer.h"
#include "train/joining/state_taker.h"

namespace lockstep::train {

std::string PartSource::text() const {
  return fmt::format("{} {} {}", part, secret, fmt::join(doors, " "));
}

PartSource PartSource::of(const std::string& text) {
  PartSource source;
  std::istringstream words(text);
  words >> source.part >> source.secret;
  const bool is_known = !words.fail();
  for (std::string door; words >> door;) source.doors.push_back(door);
  LS_CHECK(is_known && source.part >= 0 && !source.doors.empty(), DataError,
           "[join] the ranks do not say where a part of the state is given: expected its number, a "
           "secret and addresses, got \"{}\". Start all ranks with the same program.",
           text);
  return source;
}

PartTaker::PartTaker(const config::RunConfig& config, Options options, Trainer::Legacy& legacy)
    : config_(config), options_(std::move(options)), legacy_(legacy) {
  thread_.start("ls-take-part", [this] { run(); });
}

PartTaker::~PartTaker() {
  is_left_ = true;
  thread_.join();
}

int64_t PartTaker::finish(std::chrono::milliseconds limit) {
  (void)ended_.get_future().wait_for(limit);
  is_left_ = true;
  thread_.join();
  return steps_;
}

void PartTaker::run() {
  // Without a part, whatever goes wrong: then the ranks give it while they stand still.
  legacy_.part = -1;
  legacy_.parts.clear();
  try {
    // Stands for the group that this process will keep the model with.
    dist::PlanningGroup group(options_.source.part, options_.shard_size);
    Trainer trainer = Trainer::create(config_, legacy_, &group);
    std::exception_ptr failure;
    try {
      take_into(trainer);
    } catch (...) {
      failure = std::current_exception();
    }
    Trainer::Legacy left = trainer.leave();
    legacy_.task = std::move(left.task);
    if (failure) std::rethrow_exception(failure);
    if (steps_ >= 0) {
      legacy_.part = left.part;
      legacy_.parts = std::move(left.parts);
      legacy_.updates = left.updates;
    }
  } catch (const std::exception&) {
    steps_ = -1;
  }
  ended_.set_value();
}

void PartTaker::take_into(Trainer& trainer) {
  const std::vector<std::string>& doors = options_.source.doors;
  dist::Newcomer newcomer({.address = doors.front(),
                           .doors = doors,
                           .secret = options_.source.secret,
                           .facts = {},
                           .host_may_come = true,
                           .limit = options_.limit,
                           .goes_on = [this] { return !is_left_; }});
  StateTaker taker(config_, live_part(trainer), trainer.optimizer(), legacy_);
  const auto outcome = newcomer.wait(
      "", {}, [](int64_t, int64_t) {}, [&](const std::string& part) { taker.take(part); },
      dist::kJoinSilence);
  if (!outcome.call) return;
  steps_ = taker.steps();
  last_ = taker.last();
}

}  // namespace lockstep::train
