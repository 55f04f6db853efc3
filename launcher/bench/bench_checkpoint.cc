#include "launcher/bench/bench_checkpoint.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/files/file_descriptor.h"
#include "core/base/files/regular_file.h"
#include "core/base/json_line.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "train/run/checkpoint.h"
#include "train/trainer.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string file;
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

struct Round {
  double save = 0, write = 0, load = 0, read = 0;  ///< seconds
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
  if (options.json) {
    fmt::print("{}\n", JsonLine()
                           .add("config", options.file)
                           .add("bytes", bytes)
                           .add("save_mb_s", save)
                           .add("plain_write_mb_s", write)
                           .add("save_ratio", save / write)
                           .add("load_mb_s", load)
                           .add("plain_read_mb_s", read)
                           .add("load_ratio", load / read)
                           .text());
    return;
  }
  fmt::print("{} bytes, best of {} rounds\n", bytes, rounds.size());
  fmt::print("save  {:8.0f} MB/s, plain write with fsync {:8.0f} MB/s, ratio {:.2f}\n", save, write,
             save / write);
  fmt::print("load  {:8.0f} MB/s, plain read            {:8.0f} MB/s, ratio {:.2f}\n", load, read,
             load / read);
}

void run_bench(const Options& options) {
  const std::vector<std::string> files = {options.file};
  const config::RunConfig config = load_config(files);
  train::Trainer trainer = train::Trainer::create(config);
  const WorkFolder folder(options.folder);
  const std::string text = config::to_text(config);
  const fs::path plain = folder.path() / "plain" / "file";
  fs::create_directory(plain.parent_path());

  std::vector<Round> rounds;
  uint64_t bytes = 0;
  for (int i = 0; i < options.rounds; ++i) {
    Round& round = rounds.emplace_back();
    fs::path saved;
    round.save = seconds_of(
        [&] { saved = train::save_checkpoint(folder.path() / "checkpoints", trainer, text); });
    bytes = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(saved)) {
      bytes += entry.file_size();
    }
    round.write = seconds_of([&] { write_plainly(plain, bytes); });
    drop_from_cache(folder.path());
    round.load =
        seconds_of([&] { train::restore(trainer, saved, train::verify_checkpoint(saved)); });
    round.read = seconds_of([&] { read_plainly(plain); });
    fs::remove_all(folder.path() / "checkpoints");
    fs::remove(plain);
  }
  report(options, rounds, bytes);
}

}  // namespace

void add_bench_checkpoint(const Verb& bench) {
  auto options = std::make_shared<Options>();
  const Verb verb =
      bench.verb("checkpoint", "Time saving and loading a config's checkpoint, beside plain files");
  verb.option("config", options->file, "Config file (.txtpb)").required();
  verb.option("--folder", options->folder, "Where to write (default: here)").existing_folder();
  verb.option("--rounds", options->rounds, "Alternating rounds (default 5)").positive();
  verb.flag("--json", options->json, "One JSON object instead of lines of text");
  verb.runs([options] { run_bench(*options); });
}

}  // namespace lockstep::launcher
