#include "train/run/memory_rescue.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/file_descriptor.h"
#include "core/base/files/folders.h"
#include "core/base/files/regular_file.h"
#include "train/run/checkpoint.h"
#include "train/run/shard_writing.h"
#include "train/weights/manifest_text.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// What the ranks agree by; removed with what is unfinished.
constexpr std::string_view kOffer = "memory-";
constexpr const char* kStep = "step";

fs::path claim_of(const fs::path& offer, int rank) { return offer / fmt::format("rank-{}", rank); }
fs::path digests_of_rank(const fs::path& offer, int rank) {
  return offer / fmt::format("rank-{}.json", rank);
}

/// Waits until `holds` or `end`; returns what `holds` says then.
bool wait_until(Clock::time_point end, const std::function<bool()>& holds) {
  while (!holds()) {
    if (Clock::now() >= end) return holds();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

/// Whether this rank is the one to write the part of `rank`.
bool claim(const fs::path& offer, int rank) {
  std::error_code failed;
  const bool made = fs::create_directory(claim_of(offer, rank), failed);
  LS_CHECK(!failed, DataError, "[checkpoint] {} cannot be created: {}.",
           claim_of(offer, rank).string(), failed.message());
  return made;
}

fs::path partial_folder(const fs::path& checkpoints, int64_t step) {
  return checkpoints / fmt::format("{}{}{:08}", kPartialPrefix, kCheckpointPrefix, step);
}

/// Removes a folder, with what the system lets it.
class RemovedAtEnd {
 public:
  explicit RemovedAtEnd(fs::path path) : path_(std::move(path)) {}
  ~RemovedAtEnd() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  RemovedAtEnd(const RemovedAtEnd&) = delete;
  RemovedAtEnd& operator=(const RemovedAtEnd&) = delete;

 private:
  fs::path path_;
};

}  // namespace

fs::path MemoryRescue::offer() const {
  return directory.checkpoints() / fmt::format("{}{}{}", kPartialPrefix, kOffer, start);
}

void MemoryRescue::write_parts(const MemoryCopies& copies, const MemoryCopies::Parts& parts,
                               const StateShards& division) const {
  const Clock::time_point begin = Clock::now();
  const fs::path folder = partial_folder(directory.checkpoints(), parts.record.step());
  const auto write = [&](int of, const std::vector<Tensor>& values) {
    const FileDigests written =
        write_shard_files(folder, division, of, [&](size_t number) { return values[number]; });
    write_text(digests_of_rank(offer(), of), text_of(written));
  };
  // Claims come before writing, which takes as long as it takes.
  const bool is_own = claim(offer(), rank);
  const int other = copies.other_rank();
  const auto is_claimed = [&] { return name_exists(claim_of(offer(), other)); };
  const bool is_other = !wait_until(begin + to_claim, is_claimed) && claim(offer(), other);
  if (is_own) write(rank, parts.own);
  if (is_other) write(other, parts.other);
}

std::optional<int64_t> MemoryRescue::lead(
    MemoryCopies& copies, Retention retention,
    const std::function<void(CheckpointManifest&)>& change) const {
  const MemoryCopies::Parts* const parts = copies.newest();
  if (parts == nullptr) return std::nullopt;
  const int64_t step = parts->record.step();
  const fs::path checkpoints = directory.checkpoints();
  const std::optional<CheckpointEntry> newest = newest_whole(checkpoints);
  if (newest && newest->step >= step) return std::nullopt;
  // metrics.jsonl must keep the lines of all steps that the checkpoint contains.
  FileDescriptor(directory.metrics(), O_WRONLY).sync();
  const StateShards division = copies.division();
  PartialCheckpoint partial(checkpoints, step);
  const RemovedAtEnd removed(offer());
  create_folders(offer(), "checkpoint");
  write_text(offer() / kStep, fmt::format("{}", step));
  const Clock::time_point begin = Clock::now();
  write_parts(copies, *parts, division);
  const auto all = [&](const auto& path_of) {
    for (int each = 0; each < world; ++each) {
      if (!name_exists(path_of(offer(), each))) return false;
    }
    return true;
  };
  const auto missing = [&](const auto& path_of) {
    int each = 0;
    while (each < world && name_exists(path_of(offer(), each))) ++each;
    return each;
  };
  LS_CHECK(
      wait_until(begin + to_be_claimed, [&] { return all(claim_of); }), CheckpointError,
      "[checkpoint] step {} was in memory, but the part of rank {} is lost, with the rank that "
      "had a copy of it.",
      step, missing(claim_of));
  LS_CHECK(wait_until(begin + kToWrite, [&] { return all(digests_of_rank); }), CheckpointError,
           "[checkpoint] step {} was in memory, but the part of rank {} was not written within {} "
           "s.",
           step, missing(digests_of_rank), kToWrite.count());
  CheckpointManifest manifest = parts->record.manifest;
  for (int each = 0; each < world; ++each) {
    const fs::path file = digests_of_rank(offer(), each);
    manifest.files.merge(digests_of(read_whole_file(file), file.string()));
  }
  manifest.format_version = kShardedManifestVersion;
  manifest.shards = division.index();
  manifest.after_error = true;
  change(manifest);
  describe_checkpoint(parts->record, partial.path());
  partial.publish(std::move(manifest));
  (void)after_save(directory, step, retention);
  return step;
}

bool MemoryRescue::follow(MemoryCopies& copies) const {
  const fs::path file = offer() / kStep;
  if (!name_exists(file)) return false;
  const int64_t step = std::stoll(read_whole_file(file));
  const MemoryCopies::Parts* const parts = copies.of(step);
  if (parts != nullptr) write_parts(copies, *parts, copies.division());
  return true;
}

}  // namespace lockstep::train
