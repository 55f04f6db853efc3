#include "train/run/successor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/error.h"
#include "core/base/files/file_descriptor.h"
#include "core/base/log_text.h"
#include "core/base/parse_json.h"
#include "dist/group/agreement.h"
#include "train/report/machine.h"
#include "train/report/metrics_history.h"
#include "train/run/checkpoint.h"
#include "train/run/memory_rescue.h"
#include "train/run/time_fit.h"

namespace lockstep::train {

namespace {

/// Whether the lock that `owner` holds in the directory is one on this host, too.
bool sees_lock_of(const std::filesystem::path& directory, const std::string& owner) {
  try {
    return RunLock::holder(RunDirectory::open(directory)) == owner;
  } catch (const Error&) {
    return false;  // there is no such directory, or it cannot be read
  }
}

}  // namespace

void Successor::announce(dist::ProcessGroup& group, const RunDirectory& directory,
                         const RunLock& lock, Device device) {
  nlohmann::json facts = nlohmann::json::array();
  for (const ArithmeticFact& each : arithmetic_facts(device)) {
    facts.push_back({each.name, each.value});
  }
  // Absolute: the other ranks may have been started in other folders.
  const nlohmann::json told = {{"directory", std::filesystem::absolute(directory.path()).string()},
                               {"owner", lock.owner()},
                               {"isa", fmt::format("{}", fmt::join(isa_features(), " "))},
                               {"arithmetic", facts}};
  (void)dist::all_gather_texts(group, told.dump(), dist::at_start(group));
}

Successor::Leader Successor::leader_of(const std::string& text) {
  const nlohmann::json told = parse_json(text);
  Leader leader{.directory = told.at("directory").get<std::string>(),
                .owner = told.at("owner").get<std::string>(),
                .isa = told.at("isa").get<std::string>(),
                .arithmetic = {}};
  for (const nlohmann::json& each : told.at("arithmetic")) {
    leader.arithmetic.push_back({each.at(0).get<std::string>(), each.at(1).get<std::string>()});
  }
  return leader;
}

Successor::Successor(const config::RunConfig& config, dist::ProcessGroup& group)
    : config_(config),
      start_(group.start_id()),
      rank_(group.rank()),
      world_(group.size()),
      leader_(leader_of(dist::all_gather_texts(group, "", dist::at_start(group)).front())),
      sees_lock_(sees_lock_of(leader_.directory, leader_.owner)) {}

bool Successor::is_to_be_saved(const RunDirectory& directory, int64_t step) const {
  // What the leader did not record it had not finished, as its evaluation.
  if (step == 0 || last_step(directory.metrics()) != step) return false;
  const std::optional<CheckpointEntry> newest = newest_whole(directory.checkpoints());
  return !newest || newest->step < step;
}

std::string Successor::take_lead(int64_t most) {
  if (!sees_lock_) {
    return fmt::format("the lock of rank 0 in {} cannot be seen from here",
                       leader_.directory.string());
  }
  const RunDirectory directory = RunDirectory::open(leader_.directory);
  // The system releases a lock a moment after the connections of its holder have ended.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (lock_ == nullptr && !RunLock::has_ended(directory) &&
         std::chrono::steady_clock::now() < end) {
    lock_ = RunLock::inherit(directory, leader_.owner);
    if (lock_ == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (lock_ == nullptr) {
    return "rank 0 still holds the run's lock, has ended by itself, or has a successor";
  }
  // The leader may have recorded one step more than it could tell the others of.
  const int64_t recorded = last_step(directory.metrics());
  if (recorded > most + 1) {
    return fmt::format("step {} was recorded, and these ranks have done {}", recorded, most);
  }
  return "";
}

void Successor::keep_steps_done(Trainer& trainer,
                                const std::optional<HeldOutMemory>& held_out) const noexcept {
  const int64_t step = trainer.steps_done();
  try {
    if (!sees_lock_ || !trainer.keeps_steps_done()) return;
    const RunDirectory directory = RunDirectory::open(leader_.directory);
    if (!is_to_be_saved(directory, step)) return;
    const std::unique_ptr<RunLock> lock =
        lock_ == nullptr ? RunLock::inherit(directory, leader_.owner) : nullptr;
    if ((lock == nullptr && lock_ == nullptr) || !is_to_be_saved(directory, step)) return;
    FileDescriptor(directory.metrics(), O_WRONLY).sync();
    CheckpointRecord record = record_of(trainer, text_of_run(config_, trainer.early_end()));
    record.manifest.held_out = held_out;
    record.manifest.after_error = true;
    use_facts_of_leader(record.manifest);
    write_checkpoint(directory.checkpoints(), record, whole_state(trainer));
    (void)after_save(directory, step, retention(held_out));
    tell(fmt::format(
        "saved the state after step {} in place of rank 0, from which the run can go on", step));
  } catch (const std::exception& error) {
    tell(fmt::format("the state after step {} could not be saved: {}", step, error.what()));
  }
}

void Successor::keep_copies(MemoryCopies& copies) const noexcept {
  if (copies.every() == 0) return;
  try {
    const RunDirectory directory = RunDirectory::open(leader_.directory);
    const MemoryRescue rescue{directory, start_, rank_, world_};
    const MemoryCopies::Parts* const newest = copies.newest();
    const auto end = std::chrono::steady_clock::now() + MemoryRescue::kToCome;
    for (; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
      if (rescue.follow(copies)) return;
      // The leader, or another rank in its place, has saved what there was to save.
      if (RunLock::has_ended(directory)) return;
      if (!sees_lock_) continue;
      const std::unique_ptr<RunLock> lock = RunLock::inherit(directory, leader_.owner);
      if (lock == nullptr) continue;
      const auto held_out = newest == nullptr ? std::nullopt : newest->record.manifest.held_out;
      const auto step = rescue.lead(copies, retention(held_out), [&](CheckpointManifest& manifest) {
        use_facts_of_leader(manifest);
      });
      if (!step) return;
      return tell(
          fmt::format("saved the state after step {} from memory in place of rank 0, from "
                      "which the run can go on",
                      *step));
    }
  } catch (const std::exception& error) {
    tell(fmt::format("what is in memory could not be saved: {}", error.what()));
  }
}

Retention Successor::retention(const std::optional<HeldOutMemory>& held_out) const {
  const config::CheckpointConfig& kept = config_.checkpoint();
  Retention retention{kept.keep_last(), kept.keep_every(), {}};
  if (kept.keep_best() && held_out) retention.best = held_out->lowest_step;
  return retention;
}

void Successor::use_facts_of_leader(CheckpointManifest& manifest) const {
  manifest.isa = leader_.isa;
  manifest.arithmetic = leader_.arithmetic;
}

void Successor::tell(const std::string& line) const {
  write_log(stderr, fmt::format("rank {}: {}\n", rank_, line));
}

}  // namespace lockstep::train
