#include "launcher/bench/bench_checkpoint.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/files/file_descriptor.h"
#include "core/base/files/regular_file.h"
#include "core/base/json_line.h"
#include "dist/group/thread_group.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "train/build.h"
#include "train/run/checkpoint.h"
#include "train/run/checkpoint_saver.h"
#include "train/step_share.h"
#include "train/trainer.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  int ranks = 1;
  std::string folder = ".";
  int rounds = 5;
  bool json = false;
};

/// A temporary folder, removed with its contents by the destructor.
class WorkFolder {
 public:
  explicit WorkFolder(const std::string& parent)
      : path_(fs::path(parent) / fmt::format("bench-checkpoint-{}", ::getpid())) {
    fs::create_directories(path_);
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

template <class Action>
double seconds_of(Action&& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Writes a file as `dd bs=1M conv=fsync` does.
void write_plainly(const fs::path& path, uint64_t bytes) {
  const std::vector<std::byte> block(size_t{1} << 20, std::byte{1});
  FileDescriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  for (uint64_t left = bytes; left > 0; left -= std::min<uint64_t>(left, block.size())) {
    file.write(std::span(block).first(std::min<uint64_t>(left, block.size())));
  }
  file.sync();
}

void read_plainly(const fs::path& path) {
  std::vector<std::byte> block(size_t{1} << 20);
  RegularFile file(path, kMostMappedBytes);
  while (file.read(block) > 0) {
  }
}

/// Evicts the clean pages of the files from the page cache, so that reading accesses the disk.
void drop_from_cache(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const RegularFile file(entry.path(), kMostMappedBytes);
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

/// Seconds of one round.
struct Round {
  double save = 0;   ///< of a save that training waits for
  double stall = 0;  ///< for which training stands still when it is saved beside it
  double write = 0;  ///< of as many bytes to one plain file
  double load = 0;
  double read = 0;
};

double best(const std::vector<Round>& rounds, double Round::*member) {
  return (*std::ranges::min_element(rounds, {}, member)).*member;
}

void report(const Options& options, const std::vector<Round>& rounds, uint64_t bytes) {
  const auto rate = [&](double Round::*member) {
    return static_cast<double>(bytes) / best(rounds, member) / 1e6;
  };
  const double save = rate(&Round::save), write = rate(&Round::write);
  const double load = rate(&Round::load), read = rate(&Round::read);
  const double stall = best(rounds, &Round::stall), blocking = best(rounds, &Round::save);
  if (options.json) {
    fmt::print("{}\n", JsonLine()
                           .add("config", options.files.front())
                           .add("ranks", int64_t{options.ranks})
                           .add("bytes", bytes)
                           .add("save_mb_s", save)
                           .add("plain_write_mb_s", write)
                           .add("save_ratio", save / write)
                           .add("stall_ms", stall * 1e3)
                           .add("stall_ratio", stall / blocking)
                           .add("load_s", best(rounds, &Round::load))
                           .add("load_mb_s", load)
                           .add("plain_read_mb_s", read)
                           .add("load_ratio", load / read)
                           .text());
    return;
  }
  fmt::print("{} bytes from {} rank{}, best of {} rounds\n", bytes, options.ranks,
             options.ranks == 1 ? "" : "s", rounds.size());
  fmt::print("save  {:8.0f} MB/s, plain write with fsync {:8.0f} MB/s, ratio {:.2f}\n", save, write,
             save / write);
  fmt::print("stall {:8.1f} ms of training when saved beside it, {:.1f} % of a save it waits for\n",
             stall * 1e3, 100 * stall / blocking);
  fmt::print("load  {:8.0f} MB/s, plain read            {:8.0f} MB/s, ratio {:.2f}\n", load, read,
             load / read);
}

/// A rank of the benchmark with its trainer; without a group the only one. Rank 0 measures.
class BenchRank {
 public:
  BenchRank(const config::RunConfig& config, dist::ProcessGroup* group, fs::path folder)
      : text_(config::to_text(config)),
        group_(group),
        folder_(std::move(folder)),
        trainer_(train::Trainer::create(
            config, train::build_task(config, train::share_of_step(config.train(), group)), group)),
        waited_for_(with_asynchronous(config, false), trainer_, group),
        beside_(with_asynchronous(config, true), trainer_, group) {
    trainer_.step();
  }

  /// Adds the times of a round to `round`; returns the bytes of its checkpoint. Collective.
  uint64_t measure(Round& round) {
    round.save = seconds_of([&] { begin(waited_for_), waited_for_.finish(); });
    remove_checkpoints();
    const fs::path saved =
        folder_ / "checkpoints" / fmt::format("step-{:08}", trainer_.steps_done());
    const train::Position position = trainer_.position();
    round.stall = seconds_of([&] { begin(beside_); });
    trainer_.step();
    round.stall += beside_.take_copy_wait();
    if (beside_.is_under_way()) beside_.finish();
    wait();
    uint64_t bytes = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(saved)) {
      bytes += entry.file_size();
    }
    const fs::path plain = folder_ / "plain";
    if (leads()) {
      round.write = seconds_of([&] { write_plainly(plain, bytes); });
      drop_from_cache(folder_);
    }
    wait();
    round.load = seconds_of([&] { load(saved), wait(); });
    trainer_.set_position(position);
    if (leads()) {
      round.read = seconds_of([&] { read_plainly(plain); });
      fs::remove(plain);
    }
    remove_checkpoints();
    return bytes;
  }

 private:
  static config::RunConfig with_asynchronous(config::RunConfig config, bool on) {
    config.mutable_checkpoint()->set_asynchronous(on);
    return config;
  }
  bool leads() const { return group_ == nullptr || group_->rank() == 0; }
  void wait() {
    if (group_ != nullptr) group_->barrier().wait();
  }
  void begin(train::CheckpointSaver& saver) {
    wait();
    std::optional<train::CheckpointSaver::Leader> leader;
    if (leads()) {
      leader = {.folder = folder_ / "checkpoints",
                .record = train::record_of(trainer_, text_),
                .collect = {},
                .then = {}};
    }
    if (leads() || saver.in_shards()) saver.begin(std::move(leader));
  }
  /// As a run resumes: rank 0 verifies every byte, then each rank reads what it keeps.
  void load(const fs::path& saved) {
    if (leads()) train::restore(trainer_, saved, train::verify_checkpoint(saved));
    wait();
    trainer_.read_state(leads() ? trainer_.files_to_read() : train::StateFiles{saved, saved});
  }
  void remove_checkpoints() {
    wait();
    if (leads()) fs::remove_all(folder_ / "checkpoints");
    wait();
  }

  std::string text_;
  dist::ProcessGroup* group_;
  fs::path folder_;
  train::Trainer trainer_;
  train::CheckpointSaver waited_for_;
  train::CheckpointSaver beside_;
};

void run_bench(const Options& options) {
  config::RunConfig config = load_config(options.files, options.overrides);
  if (options.ranks > 1) {
    if (config.parallel().strategy() == config::ParallelConfig::DDP) {
      config.mutable_parallel()->set_strategy(config::ParallelConfig::FULL_SHARD);
    }
    config.mutable_checkpoint()->set_files(config::CheckpointConfig::SHARDS);
  }
  const WorkFolder folder(options.folder);
  std::vector<Round> rounds(static_cast<size_t>(options.rounds));
  std::atomic<uint64_t> bytes = 0;
  const auto run = [&](dist::ProcessGroup* group) {
    BenchRank rank(config, group, folder.path());
    for (Round& round : rounds) {
      Round others;
      const bool leads = group == nullptr || group->rank() == 0;
      bytes = rank.measure(leads ? round : others);
    }
  };
  if (options.ranks == 1) {
    run(nullptr);
  } else {
    for (const std::exception_ptr& error :
         dist::run_thread_ranks(options.ranks, [&](dist::ProcessGroup& group) { run(&group); })) {
      if (error) std::rethrow_exception(error);
    }
  }
  report(options, rounds, bytes);
}

}  // namespace

void add_bench_checkpoint(const Verb& bench) {
  auto options = std::make_shared<Options>();
  const Verb verb =
      bench.verb("checkpoint", "Time saving and loading a config's checkpoint, beside plain files");
  add_config_options(verb, options->files, options->overrides);
  verb.option("--ranks", options->ranks,
              "Ranks, as threads, each of which writes and reads its part (default 1)")
      .positive();
  verb.option("--folder", options->folder, "Where to write (default: here)").existing_folder();
  verb.option("--rounds", options->rounds, "Alternating rounds (default 5)").positive();
  verb.flag("--json", options->json, "One JSON object instead of lines of text");
  verb.runs([options] { run_bench(*options); });
}

}  // namespace lockstep::launcher
